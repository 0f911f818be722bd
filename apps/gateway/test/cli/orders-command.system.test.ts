import { execFile } from 'node:child_process';
import { readdir, readFile, readlink, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import { runQuery } from '@order-gateway/postgres/testing/run-query';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../../../tools/test-resources.ts';
import { program } from '../../src/cli/orders.ts';
import { runProgram } from '../helpers/gateway-process.ts';
import { runCommand } from '../helpers/run-command.ts';
import { useGateway } from '../helpers/running-gateway.ts';
import { callJson, createOrder, postJson, postOrder, postPayment, readOrder } from '../helpers/send-order.ts';

const gateway = useGateway();

/** Runs `orders` in this process on the running gateway's database. */
const orders = (...args: string[]) => runCommand(program, args, { DATABASE_URL: gateway.databaseUrl });

test('after an order was exported, deleted and imported, sending it again returns the original link', async () => {
  const created = await readOrder(await postOrder(gateway));
  const file = join(await temporaryFolder(), 'orders.ndjson.gz');
  expect(await orders('export', file, '--before', '2100-01-01T00:00:00Z')).toMatchObject({
    code: 0,
    stdout: `Wrote 1 orders to ${file}\n`,
  });
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(JSON.parse(gunzipSync(await readFile(file)).toString())).toMatchObject({ order_token: created.order_token });
  await runQuery(gateway.databaseUrl, 'delete from orders');
  expect((await orders('import', file)).stdout).toBe('Restored 1 orders; 0 already existed\n');
  expect((await orders('import', file)).stdout).toBe('Restored 0 orders; 1 already existed\n');
  const replayed = await postOrder(gateway, validOrderInput());
  expect([replayed.status, await readOrder(replayed)]).toEqual([200, created]);
});

test('refused lists refused payments, newest first, and show prints those of an order', async () => {
  expect((await orders('refused')).stdout).toBe('There are no refused payments.\n');
  const { order_token } = await createOrder(gateway, 'refusing');
  for (const [payment_id, order_amount] of [
    ['less', 1],
    ['more', 2_000],
  ] as const) {
    expect((await postPayment(gateway.checkout, order_token, { payment_id, order_amount })).status).toBe(400);
  }
  const listed = await orders('refused');
  expect(listed.stdout).toMatch(
    /^REFUSED .*\n.*payment_mismatch .* 2000\.00 .* more .*\n.* 1\.00 .* less .* refusing\n$/,
  );
  const [row, ...furtherRows] = (await orders('refused', '--json', '--limit', '1')).stdout.trim().split('\n');
  expect(furtherRows).toEqual([]);
  expect(JSON.parse(row ?? '')).toMatchObject({
    code: 'payment_mismatch',
    amount: '2000.00',
    payment_id: 'more',
    order_id: 'refusing',
    mode: 'live',
    client_id: gateway.credentials.clientId,
    checkout_client_id: gateway.checkout.credentials.clientId,
  });
  await runQuery(gateway.databaseUrl, "update refused_payments set refunded_at = now() where payment_id = 'more'");
  expect((await orders('show', 'refusing')).stdout).toMatch(
    /refused payment +less .* payment_mismatch .* UTC\nrefused payment +more .* UTC, refunded .* UTC\n/,
  );
  const { refused_payments } = JSON.parse((await orders('show', 'refusing', '--json')).stdout);
  expect(refused_payments).toMatchObject([
    { payment_id: 'less', refunded_at: null },
    { payment_id: 'more', refunded_at: expect.any(String) },
  ]);
  expect((await orders('refused')).stdout).toMatch(/UTC +\d{4}-.* more .*\n.*UTC {2,}payment_mismatch .* less /);
  const owed = (await orders('refused', '--open', '--json')).stdout.trim().split('\n');
  expect(owed.map((line) => JSON.parse(line))).toMatchObject([{ payment_id: 'less' }]);
  // A simulated payment has no checkout system that could refund it.
  await runQuery(gateway.databaseUrl, "update refused_payments set checkout_id = null where payment_id = 'less'");
  expect((await orders('refused', '--open')).stdout).toBe('No refused payment is owed.\n');
  expect(await orders('refused', '--limit', '0')).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^NUMBER must/),
  });
});

test('the documented statements delete old orders with their metadata, unless money or a dispute is open', async () => {
  const { databaseUrl, accounts, checkout } = gateway;
  await accounts.setMakesRefunds(checkout.credentials.clientId, true);
  const report = (method: string, body: object) => postJson(checkout, `/gateway.v1.CheckoutService/${method}`, body);
  const create = (order_id: string) => createOrder(gateway, order_id, { metadata: { email: 'ada@example.com' } });
  for (const order_id of ['old', 'new']) {
    await create(order_id);
    await callJson(gateway, 'POST', `/order/${order_id}/cancel`);
  }
  const pay = async (order_id: string) => {
    const payment = { order_token: (await create(order_id)).order_token, payment_id: `pays ${order_id}` };
    await postPayment(checkout, payment.order_token, payment);
    return payment;
  };
  const dispute = { dispute_id: 'd', amount: 1, currency: 'EUR' };
  for (const status of ['INQUIRY', 'OPEN', 'LOST'])
    await report('RecordDispute', { ...(await pay(`old ${status}`)), ...dispute, status });
  for (const order_id of ['old pending', 'old refunded']) {
    const paid = await pay(order_id);
    const refund = { refund_id: 'r', refund_amount: 1 };
    await callJson(gateway, 'POST', `/order/${encodeURIComponent(order_id)}/refunds`, refund);
    const made = { ...paid, refund_id: 'r', provider_refund_id: `re ${order_id}`, amount: 1, status: 'SUCCEEDED' };
    if (order_id === 'old refunded') await report('RecordRefund', made);
  }
  for (const order_id of ['old owed', 'old owed and refunded']) {
    const paid = { ...(await pay(order_id)), payment_id: `${order_id} twice` };
    await postPayment(checkout, paid.order_token, { payment_id: paid.payment_id });
    const { order_amount: amount } = validOrderInput();
    const back = { ...paid, provider_refund_id: order_id, amount, status: 'SUCCEEDED' };
    if (order_id === 'old owed and refunded') await report('RecordRefund', back);
  }
  await runQuery(databaseUrl, `delete from events where order_id like 'old%'`);
  const threeYearsAgo = `created_at - interval '3 years'`;
  const isOld = `service_order_id in (select service_order_id from orders where order_id like 'old%')`;
  await runQuery(databaseUrl, `update order_metadata set created_at = ${threeYearsAgo} where ${isOld}`);
  await runQuery(databaseUrl, `update orders set created_at = ${threeYearsAgo} where order_id like 'old%'`);
  const guide = await readFile(join(import.meta.dirname, '../../../../docs/scaling.md'), 'utf8');
  const [, statements = ''] = /```sql\n(delete from orders [^`]+)```/.exec(guide) ?? [];
  for (const statement of statements.split(';').filter((text) => text.trim() !== ''))
    await runQuery(databaseUrl, statement);
  const remaining = `select order_id from orders where order_id = 'new' or order_id like 'old%' order by order_id`;
  const kept = ['new', 'old INQUIRY', 'old OPEN', 'old owed', 'old pending'];
  expect((await runQuery(databaseUrl, remaining)).map(({ order_id }) => order_id).toSorted()).toEqual(kept);
  const pairs = 'select count(*)::int as count from order_metadata';
  expect(await runQuery(databaseUrl, pairs)).toEqual([{ count: kept.length }]);
});

test('show accepts each identifier of an order, and prints its history but no customer data', async () => {
  const { order_id, service_order_id, order_token, payment_link } = await createOrder(gateway, 'shown');
  await callJson(gateway, 'POST', '/order/shown/cancel');
  const shown = await orders('show', order_id);
  expect(shown.stdout).toMatch(/^order_id +shown\n.*order_status +CANCELLED\n.*created\n.*order\.cancelled/s);
  expect(shown.stdout).not.toContain(validOrderInput().customer_email);
  for (const name of [String(service_order_id), order_token, payment_link, `${payment_link}?lang=de`]) {
    expect((await orders('show', name)).stdout, name).toBe(shown.stdout);
  }
  const { order, events } = JSON.parse((await orders('show', order_id, '--json')).stdout);
  expect([order.order_status, events.map(({ type }: { type: string }) => type)]).toEqual([
    'CANCELLED',
    ['order.cancelled'],
  ]);
  expect(await orders('show', 'unknown')).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^There is no such order\.$/m),
  });
});

test('show prints that a payment is in progress', async () => {
  const { order_token } = await createOrder(gateway, 'claimed');
  await postJson(gateway.checkout, '/gateway.v1.CheckoutService/StartPayment', { order_token, attempt_id: 'a-1' });
  expect((await orders('show', 'claimed')).stdout).toMatch(/^in progress until \d{4}-.* UTC$/m);
});

test('refund-fail ends a pending refund once, so that its amount can be refunded again; show prints both', async () => {
  const { checkout, accounts, credentials, databaseUrl } = gateway;
  await accounts.setMakesRefunds(checkout.credentials.clientId, true);
  const { order_token, payment_link } = await createOrder(gateway, 'refunding');
  await postPayment(checkout, order_token, { payment_id: 'refunding' });
  const refund_note = 'for Ada';
  const refund = (refund_id: string) =>
    callJson(gateway, 'POST', '/order/refunding/refunds', { refund_id, refund_note });
  expect([(await refund('r-1')).status, (await refund('r-2')).status]).toEqual([201, 409]);
  expect((await orders('refund-fail', payment_link, 'r-1', '--as', 'alice')).stdout).toMatch(/^Ended the refund r-1 /);
  expect((await refund('r-2')).status).toBe(201);
  const { refunds } = (await callJson(gateway, 'GET', '/order/refunding')).body;
  expect(refunds).toMatchObject([
    { refund_id: 'r-1', status: 'FAILED', reason: 'ended_by_operator' },
    { refund_id: 'r-2', status: 'PENDING' },
  ]);
  const entries = "select actor, client_id, details from audit_log where action = 'orders.refund_fail'";
  const entry = {
    actor: 'alice',
    client_id: credentials.clientId,
    details: { order_id: 'refunding', refund_id: 'r-1' },
  };
  expect(await runQuery(databaseUrl, entries)).toEqual([entry]);
  const events = "select type from events where order_id = 'refunding' and type like 'order.refund%'";
  expect(await runQuery(databaseUrl, events)).toEqual([{ type: 'order.refund_failed' }]);
  const { order_amount: amount } = validOrderInput();
  const pending = { payment_id: 'refunding', refund_id: 'r-2', provider_refund_id: 're', amount, status: 'PENDING' };
  await postJson(checkout, '/gateway.v1.CheckoutService/RecordRefund', { order_token, ...pending });
  const dispute = { payment_id: 'refunding', dispute_id: 'd-1', amount: 1, currency: 'EUR', status: 'INQUIRY' };
  await postJson(checkout, '/gateway.v1.CheckoutService/RecordDispute', { order_token, ...dispute });
  const shown = (await orders('show', 'refunding')).stdout;
  expect(shown).toMatch(
    /\nrefund +r-1 .* of refunding +FAILED \(ended_by_operator\) .* UTC\nrefund +r-2 .* PENDING .*\ndispute +d-1 +1\.00 EUR .* INQUIRY /,
  );
  expect(shown).not.toContain(refund_note);
  const { refunds: shownRefunds, disputes } = JSON.parse((await orders('show', 'refunding', '--json')).stdout);
  expect(shownRefunds).toEqual([
    expect.objectContaining({ refund_id: 'r-1', status: 'FAILED', reason: 'ended_by_operator', refunded_at: null }),
    expect.objectContaining({ refund_id: 'r-2', status: 'PENDING', provider_refund_id: 're', payment_id: 'refunding' }),
  ]);
  expect(shownRefunds[0]).not.toHaveProperty('note');
  expect(disputes).toMatchObject([{ ...dispute, amount: '1.00' }]);
  for (const [token, refundId, reason] of [
    [order_token, 'r-1', 'no pending refund'],
    [order_token, 'r-2', 'The provider has this refund'],
    ['x', 'r-2', 'There is no such order.'],
  ] as const)
    expect(await orders('refund-fail', token, refundId)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(reason),
    });
  expect(await runQuery(databaseUrl, entries)).toEqual([entry]);
});

test('release ends a claim, so that the order can be cancelled and the attempt cannot claim it again', async () => {
  const { order_token, payment_link } = await createOrder(gateway, 'released');
  const start = () =>
    postJson(gateway.checkout, '/gateway.v1.CheckoutService/StartPayment', { order_token, attempt_id: 'a-1' });
  expect((await start()).status).toBe(200);
  expect((await orders('release', payment_link, '--as', 'alice')).stdout).toMatch(/attempt a-1\b.* order released\b/);
  expect(await orders('release', payment_link)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('No payment is in progress for this order.'),
  });
  expect(await (await start()).json()).toMatchObject({ message: expect.stringMatching(/ended/) });
  expect((await callJson(gateway, 'POST', '/order/released/cancel')).status).toBe(200);
  const entries = "select actor, client_id, details from audit_log where action = 'orders.release'";
  const details = { order_id: 'released', attempt_id: 'a-1', checkout: gateway.checkout.credentials.clientId };
  const entry = { actor: 'alice', client_id: gateway.credentials.clientId, details };
  expect(await runQuery(gateway.databaseUrl, entries)).toEqual([entry]);
  for (const [token, reason] of [
    [order_token, 'No payment is in progress for this order.'],
    ['0'.repeat(32), 'There is no such order.'],
  ] as const) {
    expect(await orders('release', token)).toMatchObject({ code: 1, stderr: expect.stringContaining(reason) });
  }
  expect(await runQuery(gateway.databaseUrl, entries)).toEqual([entry]);
});

test('as a process, export writes an empty file for a range without orders, and exits with code 0', async () => {
  const file = join(await temporaryFolder(), 'none.ndjson');
  const range = ['--from', '2019-01-01T00:00:00Z', '--before', '2020-01-01T00:00:00Z'];
  const variables = { DATABASE_URL: gateway.databaseUrl };
  expect(await runProgram('src/cli/orders.ts', ['export', file, ...range], variables)).toEqual({
    code: 0,
    stdout: `Wrote 0 orders to ${file}\n`,
    stderr: expect.stringMatching(/^Database: .+\n$/),
  });
  expect(await readFile(file, 'utf8')).toBe('');
});

test('an export that a full disk ends leaves no part of the orders behind', async () => {
  for (const order_id of ['one', 'two', 'three']) await createOrder(gateway, order_id);
  const folder = await temporaryFolder();
  const program = join(import.meta.dirname, '../../src/cli/orders.ts');
  // As a process, because only a process has a limit: no file may grow beyond one of the shell's blocks.
  const limited = ['-c', 'ulimit -f 1; exec "$@"', 'sh', process.execPath, program];
  const args = ['export', join(folder, 'orders.ndjson'), '--before', '2100-01-01T00:00:00Z'];
  const { PATH } = process.env;
  const env = { PATH, DATABASE_URL: gateway.databaseUrl, NODE_DISABLE_COMPILE_CACHE: '1' };
  const failure = await promisify(execFile)('sh', [...limited, ...args], { env }).catch((error) => error);
  expect([failure.code, failure.stderr]).toEqual([1, expect.stringContaining('The command failed: EFBIG')]);
  expect(await readdir(folder)).toEqual([]);
});

test('export replaces neither a folder nor a link, such as /dev/stdout', async () => {
  const folder = await temporaryFolder();
  const link = join(folder, 'stdout');
  await symlink('/proc/self/fd/1', link);
  for (const file of [link, folder]) {
    expect(await orders('export', file, '--before', '2100-01-01T00:00:00Z')).toEqual({
      code: 2,
      stdout: '',
      stderr: 'FILE exists, and is not a regular file.\n',
    });
  }
  expect([await readdir(folder), await readlink(link)]).toEqual([['stdout'], '/proc/self/fd/1']);
});

test('errors that a user can correct are reported on one line', async () => {
  const folder = await temporaryFolder();
  const incomplete = join(folder, 'incomplete.ndjson');
  await writeFile(incomplete, '{}');
  expect(await orders('import', incomplete)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`${incomplete} is incomplete: its last line does not end with a newline.\n`),
  });
  const missing = join(folder, 'missing.ndjson');
  expect(await orders('import', missing)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`The command failed: ENOENT`),
  });
  expect(await orders('export', missing, '--before', '2026-02-30T00:00:00Z')).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^--before must be an ISO 8601 time .*\.\n$/),
  });
});
