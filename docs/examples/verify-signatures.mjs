// Verifies a webhook, or the return of a customer if RETURN_URL is set. In a server, take the values from the request.
// Node.js 20 or newer, with the package @order-gateway/client (see README.md).
// Usage: SIGNING_SECRET=whsec_... WEBHOOK_ID=evt_... WEBHOOK_TIMESTAMP=... WEBHOOK_SIGNATURE=v1,... node verify-signatures.mjs < body
//        SIGNING_SECRET=whsec_... RETURN_URL='https://shop.example.com/thanks?order_id=...' node verify-signatures.mjs
import { buffer } from 'node:stream/consumers';
import { SignatureError, verifyReturn, verifyWebhook } from '@order-gateway/client';

const { SIGNING_SECRET, RETURN_URL, WEBHOOK_ID, WEBHOOK_TIMESTAMP, WEBHOOK_SIGNATURE } = process.env;

try {
  if (RETURN_URL !== undefined) {
    const { order_id, order_status } = await verifyReturn(RETURN_URL, SIGNING_SECRET);
    process.stdout.write(`${order_id} ${order_status}\n`);
  } else {
    const headers = {
      'webhook-id': WEBHOOK_ID,
      'webhook-timestamp': WEBHOOK_TIMESTAMP,
      'webhook-signature': WEBHOOK_SIGNATURE,
    };
    const { id, type } = await verifyWebhook(await buffer(process.stdin), headers, SIGNING_SECRET);
    process.stdout.write(`${id} ${type}\n`);
  }
} catch (error) {
  if (!(error instanceof SignatureError)) throw error;
  process.stderr.write(`not verified: ${error.message}\n`);
  process.exitCode = 1;
}
