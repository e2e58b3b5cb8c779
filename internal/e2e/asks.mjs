// Runs a pipeline whose server asks in the middle of its calls: node asks.mjs SDK ERA URL PIPELINE. It answers each question with
// the last line of its message, and prints the output and the questions.
import {connect} from './connect.mjs';

const [sdk, era, url, pipeline] = process.argv.slice(2);
const asked = [];

function answer({params}) {
  asked.push(params.message);
  return {action: 'accept', content: {name: params.message.split('  | ').at(-1)}};
}

async function answering(client) {
  if (sdk === 'sdk') {
    const {ElicitRequestSchema} = await import('@modelcontextprotocol/sdk/types.js');
    client.setRequestHandler(ElicitRequestSchema, answer);
  } else {
    client.setRequestHandler('elicitation/create', answer);
  }
}

const client = await connect(sdk, era, url, {capabilities: {elicitation: {form: {}}}, prepare: answering});
const result = await client.callTool({name: 'execute_pipeline', arguments: {pipeline: JSON.parse(pipeline)}});
console.log(JSON.stringify({version: client.getNegotiatedProtocolVersion?.() ?? '', output: result.content.at(-1).text, asked: asked.sort()}));
await client.close();
