// Prints what a client sees of what a gateway's servers offer beside tools: node resources.mjs SDK ERA URL RESOURCE RESOURCE
// PROMPT.
import {connect} from './connect.mjs';

const [sdk, era, url, first, second, name] = process.argv.slice(2);
const client = await connect(sdk, era, url);
const {resources} = await client.listResources();
const {resourceTemplates} = await client.listResourceTemplates();
const {prompts} = await client.listPrompts();
const read = [];
for (const uri of [first, second]) {
  const {contents} = await client.readResource({uri});
  read.push(`${contents[0].uri} ${contents[0].text}`);
}
const prompt = await client.getPrompt({name, arguments: {city: 'Rome'}});
const {completion} = await client.complete({
  ref: {type: 'ref/prompt', name: 'every__completable-prompt'}, argument: {name: 'department', value: 'E'},
});
console.log(JSON.stringify({
  resources: resources.map(r => r.uri),
  templates: resourceTemplates.map(r => r.uriTemplate),
  prompts: prompts.map(p => p.name),
  read,
  got: prompt.messages[0].content.text,
  complete: completion.values,
}));
await client.close();
