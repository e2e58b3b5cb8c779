// Calls execute_pipeline as a client of its own: node client.mjs SDK ERA TARGET, where SDK is "sdk" or "client" after
// the package, ERA "legacy" or "auto", and TARGET an address or, as JSON, a command with its arguments. It runs the
// pipelines that it reads as JSON from standard input, reads the output of the first one as a resource, cancels one that
// would take a minute, and prints what came of each.
import {text} from 'node:stream/consumers';

const [sdk, era, target] = process.argv.slice(2);

const packages = {
  async sdk() {
    const {Client} = await import('@modelcontextprotocol/sdk/client/index.js');
    const {StdioClientTransport} = await import('@modelcontextprotocol/sdk/client/stdio.js');
    const {StreamableHTTPClientTransport} = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
    return {Client, StdioClientTransport, StreamableHTTPClientTransport};
  },
  async client() {
    const {Client, StreamableHTTPClientTransport} = await import('@modelcontextprotocol/client');
    const {StdioClientTransport} = await import('@modelcontextprotocol/client/stdio');
    return {Client, StdioClientTransport, StreamableHTTPClientTransport};
  },
};

const {Client, StdioClientTransport, StreamableHTTPClientTransport} = await packages[sdk]();

function transport() {
  if (target.startsWith('http')) return new StreamableHTTPClientTransport(new URL(target));
  const [command, ...args] = JSON.parse(target);
  return new StdioClientTransport({command, args, env: process.env, stderr: 'inherit'});
}

function call(client, pipeline, onprogress, signal) {
  const params = {name: 'execute_pipeline', arguments: {pipeline}};
  const options = {onprogress, signal, resetTimeoutOnProgress: true, timeout: 30_000};
  return sdk === 'sdk' ? client.callTool(params, undefined, options) : client.callTool(params, options);
}

// cancelled cancels a call once it makes progress. The server takes one call at a time, and answers another one only if
// the first has ended: nothing that a caller does not wait for goes on.
async function cancelled(client) {
  const slow = {type: 'tool', server: 'demo', name: 'slow'};
  const items = {type: 'command', command: 'jq', args: ['-n', '-c', '{ms: (1, 60000)}']};
  const controller = new AbortController();
  const outcome = await call(client, [items, {...slow, for_each: true}], () => controller.abort('enough'), controller.signal)
    .then(() => 'it was answered', e => String(e));
  const next = await call(client, [{...slow, args: {ms: 1}}]);
  return {outcome, next: {isError: next.isError ?? false, content: next.content}};
}

const pipelines = JSON.parse(await text(process.stdin));
const client = new Client({name: 'e2e', version: '1'}, {versionNegotiation: {mode: era}});
const errors = []; // such as an answer that nobody waits for
client.onerror = e => errors.push(String(e));
await client.connect(transport());
const replies = [];
let resource;
for (const pipeline of pipelines) {
  const progress = [];
  const result = await call(client, pipeline, p => progress.push(p.progress));
  replies.push({isError: result.isError ?? false, content: result.content, progress});
  resource ??= await client.readResource({uri: `mcsh://runs/${result._meta['mcsh/report'].run}/output`});
}
const {tools} = await client.listTools();
const outcome = await cancelled(client);
console.log(JSON.stringify({
  version: client.getNegotiatedProtocolVersion?.() ?? '',
  tools: tools.map(t => t.name).sort(),
  replies,
  resource: resource.contents,
  ...outcome,
  errors,
}));
await client.close();
