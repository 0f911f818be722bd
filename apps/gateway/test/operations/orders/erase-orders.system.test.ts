import { personalFieldNames } from '@order-gateway/domain/orders';
import { anotherOrderInput, validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import { runQuery } from '@order-gateway/postgres/testing/run-query';
import { afterAll, expect, test } from 'vitest';
import { program } from '../../../src/cli/orders.ts';
import { endProcesses, startProcess } from '../../helpers/gateway-process.ts';
import { runCommand } from '../../helpers/run-command.ts';
import { testSecretsKeyText, useGateway } from '../../helpers/running-gateway.ts';
import { callJson, postOrder, readOrder } from '../../helpers/send-order.ts';

// The command erases, and a gateway with RETENTION_DAYS, which only a process can be.
const gateway = useGateway();
afterAll(endProcesses);

/** Runs `orders` in this process on the running gateway's database. */
function orders(args: string[], SECRETS_KEY = testSecretsKeyText) {
  return runCommand(program, args, { DATABASE_URL: gateway.databaseUrl, SECRETS_KEY });
}

function makeOlder(orderId: string, days: number) {
  const created = `created_at = now() - interval '${days} days'`;
  return runQuery(gateway.databaseUrl, `update orders set ${created} where order_id = '${orderId}'`);
}

/** Returns the fields that a conflict names. */
async function conflictOf(response: Response): Promise<unknown> {
  expect(response.status).toBe(409);
  const { detail } = (await response.json()) as { detail: string };
  return detail.split('It differs in: ')[1]?.split(', ');
}

test('an erased order can still be replayed, a different order still conflicts with it, and its page and record remain', async () => {
  const { clientId } = gateway.credentials;
  const order = validOrderInput({ order_id: 'erased', customer_name: 'Vanishing Customer' });
  const created = await readOrder(await postOrder(gateway, order));
  expect(await orders(['erase', clientId, 'erased'])).toEqual({
    code: 0,
    stdout: "Erased the customers' data of 1 order.\n",
    stderr: expect.stringMatching(/^Database: .+\n$/),
  });
  const [row] = await runQuery(gateway.databaseUrl, "select * from orders where order_id = 'erased'");
  expect(JSON.stringify(row)).not.toMatch(/Vanishing|noor|Lindengracht|walnut/);

  const replayed = await postOrder(gateway, { ...order, order_checksum: 'another' });
  expect([replayed.status, await readOrder(replayed)]).toEqual([200, created]);
  const personal = personalFieldNames.filter((name) => name !== 'order_checksum');
  const { customer_phone, order_currency } = anotherOrderInput;
  expect(await conflictOf(await postOrder(gateway, { ...order, customer_phone }))).toEqual(personal);
  expect(await conflictOf(await postOrder(gateway, { ...order, order_currency }))).toEqual(['order_currency']);

  const { body: record } = await callJson(gateway, 'GET', '/order/erased');
  expect(record).toMatchObject({ order_id: 'erased', order_amount: 1249.5, order_status: 'UN_PAID', order_note: '' });
  const page = await fetch(created.payment_link);
  expect([page.status, await page.text()]).toEqual([
    200,
    expect.stringContaining('https://shop.example.com/?order_id=erased'),
  ]);
  expect(JSON.stringify([...gateway.calls, ...gateway.errors])).not.toContain('Vanishing');

  const repeated = await orders(['erase', clientId, 'erased']);
  expect(repeated.stdout).toBe('There is no such order, or its data has already been erased.\n');
});

test('orders are erased by e-mail and by age', async () => {
  for (const orderId of ['mail-1', 'mail-2'])
    await postOrder(gateway, validOrderInput({ order_id: orderId, customer_email: 'who@mail.example' }));
  const byEmail = ['erase', '--email', 'Who@mail.example'];
  expect((await orders([...byEmail, '--dry-run', '--json'])).stdout).toBe('{"erasable":2}\n');
  expect((await orders([...byEmail, '--dry-run'], '')).stdout).toBe('Orders that would be erased: 2.\n');
  expect(await orders([...byEmail, '--as', 'Alice', '--json'])).toMatchObject({
    code: 0,
    stdout: '{"erased":2}\n',
  });
  await postOrder(gateway, validOrderInput({ order_id: 'aged' }));
  await makeOlder('aged', 20);
  const before = new Date(Date.now() - 19 * 86_400_000).toISOString();
  expect((await orders(['erase', '--before', before])).stdout).toBe("Erased the customers' data of 1 order.\n");
  const log = await runQuery(gateway.databaseUrl, "select actor, details from audit_log where action = 'orders.erase'");
  expect(log.slice(-2)).toMatchObject([{ actor: 'Alice', details: { by: 'email' } }, { details: { by: 'age' } }]);
  expect(JSON.stringify(log)).not.toContain('mail.example');
});

const passOne = 'Pass one of: CLIENT_ID ORDER_ID, --email EMAIL, --before TIME.';

test.each([
  [['erase'], passOne],
  [['erase', `app_${'0'.repeat(24)}`, '--email', 'a@b'], passOne],
  [
    ['erase', '--before', 'yesterday'],
    '--before must be an ISO 8601 time with an offset, such as 2027-01-31T12:00:00Z.',
  ],
])('orders %j: exit code 2 with a message', async (args, message) => {
  expect(await orders(args)).toEqual({ code: 2, stdout: '', stderr: `${message}\n` });
});

test('without SECRETS_KEY, nothing is erased, and the error names the variable', async () => {
  const customer_email = 'kept@example.com';
  await postOrder(gateway, validOrderInput({ order_id: 'kept', customer_email }));
  const stderr = expect.stringContaining('Set SECRETS_KEY first');
  expect(await orders(['erase', '--email', customer_email], '')).toMatchObject({ code: 1, stderr });
  const emails = await runQuery(gateway.databaseUrl, "select customer_email from orders where order_id = 'kept'");
  expect(emails).toEqual([{ customer_email }]);
});

test('with RETENTION_DAYS, a gateway erases older orders and keeps newer ones', async () => {
  for (const orderId of ['old', 'young']) await postOrder(gateway, validOrderInput({ order_id: orderId }));
  await makeOlder('old', 31);
  const keys = `${Buffer.alloc(32, 4).toString('base64')},${testSecretsKeyText}`;
  const retaining = await startProcess({ DATABASE_URL: gateway.databaseUrl, SECRETS_KEY: keys, RETENTION_DAYS: '30' });
  const which = "erased_digest is not null and order_id in ('old', 'young')";
  const erased = () => runQuery(gateway.databaseUrl, `select order_id from orders where ${which}`);
  await expect.poll(erased).toEqual([{ order_id: 'old' }]);
  const log = await runQuery(gateway.databaseUrl, 'select actor, details from audit_log order by id desc limit 1');
  expect(log).toMatchObject([{ actor: 'RETENTION_DAYS', details: { by: 'age', orders: 1 } }]);
  const replayed = await postOrder({ ...gateway, url: retaining.url }, validOrderInput({ order_id: 'old' }));
  expect(replayed.status).toBe(200);
  expect(retaining.lines.join('\n')).toContain('erased old orders');
});
