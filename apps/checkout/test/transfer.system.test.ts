// The gateway is a process, because apps do not import each other.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createEncryption } from '@order-gateway/runtime/encryption';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { paymentsCommands } from '../src/cli/commands.ts';
import { addStatementCommands } from '../src/cli/statement.ts';
import { openGateway } from '../src/gateway/gateway.ts';
import { createProviders } from '../src/providers/all.ts';
import { creditorReferenceOf } from '../src/providers/transfer/creditor-reference.ts';
import { inGroups } from '../src/providers/transfer/mod97.ts';
import { type ImportDeps, openImport } from '../src/statements/import.ts';
import { credits } from '../src/store/schema.ts';
import { statementXml, testIban, transaction } from '../testing/statements.ts';
import { testSecretsKey, useWorld } from './helpers/world.ts';

const world = useWorld('live');
const name = 'Käse & Wein e. K.';
const today = new Date().toISOString().slice(0, 10);

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'transfer-'));
});
afterAll(() => rm(folder, { recursive: true }));

/** Runs a command of `payments`. Returns what it prints, and adds it to `lines`. */
async function run(args: readonly string[], secrets: readonly string[] = [], lines: string[] = []): Promise<string> {
  const print = (line: string) => void lines.push(line);
  const providers = createProviders(world.store, { baseUrl: () => world.baseUrl });
  const encryption = createEncryption<string>([testSecretsKey]);
  const program = paymentsCommands((work) => work({ store: world.store, providers, encryption }), {
    print,
    readSecrets: async () => secrets,
    actor: 'tester',
  });
  const gateway = openGateway(world.options.gatewayGrpcUrl, world.options.credentials, world.options.patience);
  addStatementCommands(program, (work) => work({ store: world.store, gateway }), { print, actor: 'tester' });
  await program.parseAsync([...args], { from: 'user' });
  return lines.join('\n');
}

async function statement(...texts: readonly string[]): Promise<string> {
  const path = join(folder, 'statement.xml');
  const entries = texts.map((text) => ({ date: today, amount: '25.50', transactions: [transaction(text)] }));
  await writeFile(path, statementXml(entries));
  return path;
}

const order = { order_amount: 25.5, order_currency: 'EUR' };
const locationOf = (response: Response) => response.headers.get('location') ?? '';

test('an order is paid by transfer: the page shows the details, and a statement records the payment', async () => {
  const { clientId } = world.merchant;
  await expect(run(['connect', clientId, 'transfer'], ['DE89370400440532013001', name])).rejects.toThrow(/^The IBAN/);
  await expect(run(['connect', clientId, 'transfer'], [testIban, ' '])).rejects.toThrow(/^The name/);
  expect(await run(['connect', clientId, 'transfer'], [testIban, name])).toContain(`transfer account ${testIban}`);

  const token = await world.createOrder('transferred', order);
  expect(locationOf(await world.get(`/transfer/${token}?lang=de`))).toBe(`/pay/${token}?lang=de`);
  const chosen = await world.post(`/pay/${token}`);
  expect([chosen.status, locationOf(chosen)]).toEqual([303, `/transfer/${token}`]);
  // The language that the customer chose on the payment page.
  expect(locationOf(await world.post(`/pay/${token}`, { lang: 'de' }))).toBe(`/transfer/${token}?lang=de`);
  const { service_order_id } = await world.findOrder('transferred');
  const reference = creditorReferenceOf(Number(service_order_id));
  const response = await world.get(`/transfer/${token}`);
  const page = await response.text();
  for (const text of [
    'Käse &amp; Wein e. K.',
    inGroups(testIban),
    inGroups(reference),
    '€25.50',
    'value="25.50"',
    '<svg',
  ])
    expect(page).toContain(text);
  expect(response.headers.get('content-security-policy')).toMatch(/script-src 'sha256-/);
  expect(await (await world.get(`/transfer/${token}?lang=de`)).text()).toContain('Kontoinhaber');

  const path = await statement(reference, 'Thanks');
  expect(await run(['statement', '--dry-run', path])).toContain('MATCHED');
  expect(await run(['statement', path])).toMatch(/RECORDED.*transferred.*\nLISTED.*no_reference.*Erika Mustermann/);
  expect(await world.findOrder('transferred')).toMatchObject({ order_status: 'PAID' });
  expect(new URL(locationOf(await world.get(`/transfer/${token}`))).searchParams.get('order_status')).toBe('PAID');
  expect(await run(['statement', '--json', path])).toContain('"state":"KNOWN"');
});

test('a file that cannot be read is rejected, and not reported as a file without credits', async () => {
  const lines: string[] = [];
  await expect(run(['statement', join(folder, 'absent.xml')], [], lines)).rejects.toThrow(
    'No part of this file was used',
  );
  expect(lines).toEqual([]);
});

test('a listed entry is assigned to an order, and no other one to the paid order', async () => {
  const token = await world.createOrder('assigned', order);
  const listed = JSON.parse(
    (await run(['statement', '--json', await statement('Order 7', 'Order 8')])).split('\n')[0] ?? '',
  );
  expect(await run(['assign', listed.entry, `https://pay.example/payment/${token}`])).toContain(
    'payment of the order assigned',
  );
  expect(await world.findOrder('assigned')).toMatchObject({ order_status: 'PAID' });
  const second = `${Number(listed.entry) + 1}`;
  await expect(run(['assign', second, token])).rejects.toThrow('order_not_payable');
});

test('a transfer of an order with a payment in progress waits', async () => {
  const token = await world.createOrder('claimed', order);
  await world.post(`/pay/${token}`);
  const { service_order_id } = await world.findOrder('claimed');
  const gateway = openGateway(world.options.gatewayGrpcUrl, world.options.credentials, world.options.patience);
  await gateway.start({ orderToken: token, attemptId: 'other' }, 600);
  const path = await statement(creditorReferenceOf(Number(service_order_id)));
  expect(await run(['statement', path])).toMatch(/WAITING.*payment_in_progress/);
  expect(await world.findOrder('claimed')).toMatchObject({ order_status: 'UN_PAID' });
});

test.each([
  ['UN_PAID', 'RECORDED'],
  ['CANCELLED', 'OWED'],
])('the date counts if an order that is %s is younger than the time in its statement', async (status, state) => {
  const orderId = `too-early-${status}`;
  const token = await world.createOrder(orderId, order);
  await world.post(`/pay/${token}`);
  const { service_order_id, created_at } = await world.findOrder(orderId);
  if (status === 'CANCELLED') await world.call('POST', `/order/${orderId}/cancel`);
  const gateway = openGateway(world.options.gatewayGrpcUrl, world.options.credentials, world.options.patience);
  let isLost = true;
  const losing: ImportDeps['gateway'] = {
    ...gateway,
    async recordTransfer(payment) {
      const answer = await gateway.recordTransfer(payment);
      if (!isLost) return answer;
      isLost = false;
      throw new Error('the response was lost');
    },
  };
  const extra = '<RltdDts><AccptncDtTm>2026-01-01T00:00:00Z</AccptncDtTm></RltdDts>';
  const text = creditorReferenceOf(Number(service_order_id));
  const transactions = [transaction(text, { extra, payer: orderId })];
  const path = join(folder, 'too-early.xml');
  await writeFile(path, statementXml([{ date: today, amount: '25.50', transactions }]));
  const statements = openImport({ store: world.store, gateway: losing });
  const [first] = await Array.fromAsync(statements.importFile(path, false));
  expect(first).toMatchObject({ state: 'WAITING', reason: 'the response was lost' });
  await statements.reportWaiting();
  const isFirst = eq(credits.creditId, Number(first?.creditId));
  expect(await world.store.run((db) => db.select().from(credits).where(isFirst))).toMatchObject([{ state }]);
  const payment = { paid_at: created_at };
  const expected = state === 'RECORDED' ? payment : { refused_payments: [payment] };
  expect(await world.findOrder(orderId)).toMatchObject(expected);
});

test('a file that is rejected is named, and other files are read', async () => {
  const path = join(folder, 'page.html');
  await writeFile(path, '<!doctype html>');
  await expect(run(['statement', path, await statement('Thanks')])).rejects.toThrow(
    `${path}: Line 1: The file is not well-formed XML`,
  );
});
