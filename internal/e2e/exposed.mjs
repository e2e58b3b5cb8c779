// Prints what a client gets of the tools that a gateway exposes: node exposed.mjs SDK ERA URL. The client checks structured
// content against the schemas of the tools.
import {connect} from './connect.mjs';

const [sdk, era, url] = process.argv.slice(2);
const client = await connect(sdk, era, url);
const {tools} = await client.listTools();
const call = async (name, args, options) => await (sdk === 'sdk' ?
  client.callTool({name: `every__${name}`, arguments: args}, undefined, options) :
  client.callTool({name: `every__${name}`, arguments: args}, options));
const steps = [];
const said = await call('echo', {message: 'héllo'});
const structured = await call('get-structured-content', {location: 'Chicago'});
const links = await call('get-resource-links', {count: 1});
const failed = await call('get-sum', {a: 'x', b: 1});
await call('trigger-long-running-operation', {duration: 1, steps: 2}, {onprogress: p => steps.push(`${p.progress}/${p.total}`)});
console.log(JSON.stringify({
  tools: tools.map(t => t.name),
  said: said.content[0].text,
  structured: structured.structuredContent,
  links: links.content.filter(c => c.type === 'resource_link').map(c => c.uri),
  failed: failed.isError && failed.content[0].text,
  steps: steps.slice(-1),
}));
await client.close();
