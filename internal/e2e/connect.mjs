// Connects a client of a package from npm: SDK is "sdk" or "client" after the name of the package, ERA "legacy" or "auto".
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

// connect connects to an address, with a token if one is given, or starts a command with its arguments. Mistakes that the
// client finds go to onerror; prepare gets the client before it connects.
export async function connect(sdk, era, target, {token, cwd, onerror, capabilities, prepare} = {}) {
  const {Client, StdioClientTransport, StreamableHTTPClientTransport} = await packages[sdk]();
  const client = new Client({name: 'e2e', version: '1'}, {versionNegotiation: {mode: era}, capabilities});
  client.onerror = onerror;
  await prepare?.(client);
  const headers = token ? {Authorization: `Bearer ${token}`} : {};
  const [command, ...args] = [target].flat();
  await client.connect(command.startsWith('http') ?
    new StreamableHTTPClientTransport(new URL(command), {requestInit: {headers}}) :
    new StdioClientTransport({command, args, cwd, env: process.env, stderr: 'inherit'}));
  return client;
}
