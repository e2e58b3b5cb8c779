// Calls execute_pipeline as a client of its own: node client.mjs SDK ERA TARGET, where SDK is "sdk" or "client" after
// the package, ERA "legacy" or "auto", and TARGET an address or, as JSON, a command with its arguments. It runs the
// pipelines that it reads as JSON from standard input, reads the output of the first one as a resource, cancels one that
// would take a minute, and prints what came of each.
import {text} from 'node:stream/consumers';
import {connect} from './connect.mjs';

const [sdk, era, target] = process.argv.slice(2);

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
const errors = []; // such as an answer that nobody waits for
const client = await connect(sdk, era, target.startsWith('http') ? target : JSON.parse(target), {onerror: e => errors.push(String(e))});
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
