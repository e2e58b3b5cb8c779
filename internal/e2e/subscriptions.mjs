// Subscribes to a resource, prints the URI of the first update, and ends the subscription: node subscriptions.mjs SDK ERA URL URI.
import {connect} from './connect.mjs';

const [sdk, era, url, uri] = process.argv.slice(2);
const client = await connect(sdk, era, url);
let updated;
const update = new Promise(resolve => updated = resolve);
if (sdk === 'sdk') {
  const {ResourceUpdatedNotificationSchema} = await import('@modelcontextprotocol/sdk/types.js');
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, n => updated(n.params.uri));
} else {
  client.setNotificationHandler('notifications/resources/updated', n => updated(n.params.uri));
}
if (era === 'legacy') {
  await client.subscribeResource({uri});
  console.log(await update);
  await client.unsubscribeResource({uri});
} else {
  const subscription = await client.listen({resourceSubscriptions: [uri]});
  if (subscription.honoredFilter.resourceSubscriptions[0] !== uri) {
    throw new Error(`acknowledged is ${JSON.stringify(subscription.honoredFilter)}`);
  }
  console.log(await update);
  await subscription.close();
}
await client.close();
