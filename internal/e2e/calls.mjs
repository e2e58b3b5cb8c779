// Calls tools of servers as a client of its own: node calls.mjs SDK ERA, where SDK and ERA are those of client.mjs. Standard
// input is an array of sessions, {target, token, cwd, calls: [{tool, args}]}; what it prints is, of each, the names of the
// tools and the results.
import {text} from 'node:stream/consumers';
import {connect} from './connect.mjs';

const [sdk, era] = process.argv.slice(2);
const answers = [];
for (const {target, token, cwd, calls} of JSON.parse(await text(process.stdin))) {
  const client = await connect(sdk, era, target, {token, cwd});
  const {tools} = await client.listTools(); // then it checks results against the schemas
  const results = [];
  for (const {tool, args} of calls) {
    results.push(await client.callTool({name: tool, arguments: args}));
  }
  answers.push({tools: tools.map(t => t.name), results});
  await client.close();
}
console.log(JSON.stringify(answers));
