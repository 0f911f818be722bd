import { setTimeout as sleep } from 'node:timers/promises';
import type { Credentials } from '@order-gateway/domain/accounts';
import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  endProcesses,
  type GatewayProcess,
  newDatabase,
  runProgram,
  startProcess,
} from '../../helpers/gateway-process.ts';
import { createOrder, postOrder, postPayment } from '../../helpers/send-order.ts';

// Rules that hold for any number of processes, tested with two processes on one database.

let databaseUrl: string;
let gateways: readonly [GatewayProcess, GatewayProcess];
let credentials: Credentials;
beforeAll(async () => {
  ({ databaseUrl, credentials } = await newDatabase());
  const starts = [0, 1].map(() => startProcess({ DATABASE_URL: databaseUrl, BASE_URL: 'https://pay.example.com' }));
  gateways = (await Promise.all(starts)) as [GatewayProcess, GatewayProcess];
  await createOrder({ url: gateways[0].url, credentials }, validOrderInput().order_id);
});
afterAll(endProcesses);

/** Sends the stored order to each process, again if a process is too busy. Returns the statuses. */
function statusesWith(clientSecret: string): Promise<number[]> {
  const statusAt = async (url: string): Promise<number> => {
    const { status } = await postOrder({ url, credentials: { ...credentials, clientSecret } });
    return status === 503 || status === 504 ? statusAt(url) : status;
  };
  return Promise.all(gateways.map(({ url }) => statusAt(url)));
}

async function merchant(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runProgram('src/cli/merchant.ts', args, { DATABASE_URL: databaseUrl });
  expect([code, stderr]).toEqual([0, expect.stringMatching(/^Database: .+\n$/)]);
  return stdout;
}

test('a secret works in every process as soon as it is added, and in no process a second after it is revoked', async () => {
  expect(await statusesWith(credentials.clientSecret)).toEqual([200, 200]);
  const { id, client_secret: added } = JSON.parse(await merchant('secret', 'add', credentials.clientId, '--json'));
  expect(await statusesWith(added)).toEqual([200, 200]);

  // Keeps using the secret, because the processes forget an idle merchant.
  let revoking = true;
  const inUse = (async () => {
    while (revoking) await Promise.all([statusesWith(added), sleep(50)]);
  })();
  await merchant('secret', 'revoke', credentials.clientId, id);
  await sleep(1_000);
  expect(await statusesWith(added)).toEqual([401, 401]);
  revoking = false;
  await inUse;
  expect(await statusesWith(credentials.clientSecret)).toEqual([200, 200]);
});

test('if two processes receive one payment for 20 orders of two merchants at the same time, only one order is paid', async () => {
  const created = await runProgram('src/cli/checkout.ts', ['create', '--name', 'Checkout', '--json'], {
    DATABASE_URL: databaseUrl,
  });
  const { client_id: clientId, client_secret: clientSecret } = JSON.parse(created.stdout);
  const other = JSON.parse(await merchant('create', '--name', 'Other Shop', '--json'));
  const shops = [credentials, { clientId: other.client_id, clientSecret: other.client_secret }] as const;
  const paid_at = new Date().toISOString();
  for (let round = 0; round < 5; round += 1) {
    const orders = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        createOrder(
          { url: gateways[0].url, credentials: shops[index % 2] ?? credentials },
          `one-payment-${round}-${index}`,
        ),
      ),
    );
    const pay = async (order_token: string, index: number): Promise<string> => {
      const checkout = { url: gateways[index % 4 < 2 ? 0 : 1].url, credentials: { clientId, clientSecret } };
      const response = await postPayment(checkout, order_token, { payment_id: `one-payment-${round}`, paid_at });
      const { order, details } = Object(await response.json());
      const outcome: string = order?.order_status ?? details[0].debug.reason;
      // Repeats the call, as a checkout system does when the gateway is too busy.
      return /^(UNAVAILABLE|OVERLOADED|DEADLINE_EXCEEDED)$/.test(outcome) ? pay(order_token, index) : outcome;
    };
    const statuses = await Promise.all(orders.map(({ order_token }, index) => pay(order_token, index)));
    expect(statuses.toSorted()).toEqual(
      ['PAID', ...Array.from({ length: 19 }, () => 'PAYMENT_ID_CONFLICT')].toSorted(),
    );
  }
});
