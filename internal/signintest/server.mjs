// An authorization server for tests: npm's oidc-provider. The arguments are its directory and a JSON object:
// ttl (seconds of an access token), rotate (single-use refresh tokens), resource (that it knows), clients, documents (about
// clients, by their addresses: the server reads no address of this machine).
import { createServer } from "node:http";
import { once } from "node:events";
import { join } from "node:path";

const [modules, given] = process.argv.slice(2);
const { default: Provider, errors } = await import(join(modules, "oidc-provider", "lib", "index.js"));
const options = JSON.parse(given);

const server = createServer();
server.listen(0, "127.0.0.1");
await once(server, "listening");
const issuer = `http://127.0.0.1:${server.address().port}`;

const provider = new Provider(issuer, {
  clients: options.clients ?? [],
  scopes: ["openid", "offline_access", "read", "write"],
  claims: { openid: ["sub"], email: ["email"] },
  conformIdTokenClaims: false,
  clientAuthMethods: ["none", "client_secret_basic", "client_secret_post"],
  findAccount: (ctx, id) => ({ accountId: id, claims: async () => ({ sub: id, email: `${id}@example.com` }) }),
  rotateRefreshToken: () => options.rotate,
  issueRefreshToken: async (ctx, client) => client.grantTypeAllowed("refresh_token"),
  ttl: { AccessToken: options.ttl, AuthorizationCode: 60, RefreshToken: 3600, DeviceCode: 600, Grant: 3600, Interaction: 600, Session: 600 },
  ...(options.documents && {
    fetch: async (url) => {
      const document = options.documents[String(url)];
      return new Response(JSON.stringify(document ?? {}), { status: document ? 200 : 404, headers: { "content-type": "application/json" } });
    },
  }),
  features: {
    ...(options.documents && { clientIdMetadataDocument: { enabled: true, ack: "draft-02" } }),
    devInteractions: { enabled: true },
    registration: { enabled: true },
    revocation: { enabled: true, allowedPolicy: () => true },
    introspection: { enabled: true, allowedPolicy: () => true },
    deviceFlow: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => undefined,
      useGrantedResource: () => false,
      getResourceServerInfo: (ctx, resource) => {
        if (resource !== options.resource) throw new errors.InvalidTarget();
        return { scope: "read write", audience: resource, accessTokenTTL: options.ttl, accessTokenFormat: "opaque" };
      },
    },
  },
});
server.on("request", provider.callback());
console.log("issuer " + issuer);
