import { exampleEndpoint, exampleOrder } from './example-order.ts';

const { order_checksum: _, ...order } = exampleOrder;
const orderId = `'${order.order_id}'`;
const endpointId = `'${exampleEndpoint.id}'`;

/** The call of the Node.js SDK for each operation of the OpenAPI document that needs credentials, by `operationId`. */
const calls: Readonly<Record<string, string>> = {
  createOrder: `const { payment_link } = await client.createOrder(${literal(order)});
console.log(payment_link);`,
  getOrder: `console.log(await client.getOrder(${orderId}));`,
  getOrderByQuery: "console.log(await client.getOrder({ paymentId: 'pay_83b1f0' }));",
  cancelOrder: `console.log(await client.cancelOrder(${orderId}));`,
  recordManualPayment: `const order = await client.recordManualPayment(${orderId}, {
  payment_id: 'receipt-204',
  paid_on: new Date().toISOString().slice(0, 10),
});
console.log(order.order_status);`,
  createRefund: `const refund = await client.createRefund(${orderId}, { refund_id: 'return-17', refund_amount: 4.5 });
console.log(refund.status);`,
  listOrders: `for await (const order of client.listOrders({ status: 'PAID' })) {
  console.log(order.order_id, order.paid_at);
}`,
  listEvents: `const { events, next_cursor } = await client.listEvents({ types: ['order.paid'], limit: 100 });
for (const { type, data } of events) console.log(type, data.order_id);
console.log(next_cursor);`,
  createWebhookEndpoint: `const endpoint = await client.createWebhookEndpoint({ url: '${exampleEndpoint.url}' });
console.log(endpoint.signing_secret);`,
  getWebhookEndpoint: `console.log(await client.getWebhookEndpoint(${endpointId}));`,
  listWebhookEndpoints: 'console.log(await client.listWebhookEndpoints());',
  updateWebhookEndpoint: `console.log(await client.updateWebhookEndpoint(${endpointId}, { status: 'enabled' }));`,
  deleteWebhookEndpoint: `await client.deleteWebhookEndpoint(${endpointId});`,
  pingWebhookEndpoint: `console.log(await client.pingWebhookEndpoint(${endpointId}));`,
  rotateWebhookSecret: `const endpoint = await client.rotateWebhookSecret(${endpointId});
console.log(endpoint.signing_secret);`,
  listWebhookDeliveries: `for await (const delivery of client.listWebhookDeliveries(${endpointId})) {
  console.log(delivery);
}`,
  redeliverWebhook: `await client.redeliverWebhook(${endpointId}, 'evt_4b1c0f6a2d9e4f7f8a3c5d6e7f809112');`,
  redeliverFailedWebhooks: `const since = new Date(Date.now() - 3_600_000);
console.log(await client.redeliverFailedWebhooks(${endpointId}, since));`,
  createClientSecret: 'console.log(await client.createClientSecret());',
  listClientSecrets: 'console.log(await client.listClientSecrets());',
  revokeClientSecret: "console.log(await client.revokeClientSecret('2'));",
  getBrand: 'console.log(await client.getBrand());',
  updateBrand: "console.log(await client.updateBrand({ color: '#0b5fff' }));",
};

/** Returns code that calls an operation with the Node.js SDK. Scalar shows it beside its own samples. */
export function sdkSamples(operationId: string, baseUrl: string) {
  const call = calls[operationId];
  if (call === undefined) throw new Error(`the operation ${operationId} has no sample`);
  const source = `import { createClient } from '@order-gateway/client';

const { CLIENT_ID, CLIENT_SECRET } = process.env;
const client = createClient({
  baseUrl: '${baseUrl}',
  clientId: CLIENT_ID,
  clientSecret: CLIENT_SECRET,
});
${call}
`;
  return [{ lang: 'JavaScript', label: 'Node.js SDK', source }] as const;
}

/** Returns an object as code. No value may contain an apostrophe. */
function literal(value: object): string {
  const members = Object.entries(value).map(
    ([name, member]) => `  ${name}: ${typeof member === 'string' ? `'${member}'` : member},`,
  );
  return `{\n${members.join('\n')}\n}`;
}
