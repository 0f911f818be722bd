import { createHash } from 'node:crypto';
import { ConnectError, createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { OrderService } from '@gateway/contract/gateway/v1/order_service_pb';
import { ErrorInfoSchema } from '@gateway/contract/google/rpc/error_details_pb';
import { checksumOf } from '@gateway/domain/order-checksum';
import { validOrderFields, validOrderInput } from '@gateway/domain/testing/sample-orders';
import postgres from 'postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runProgram } from './gateway-process.ts';
import { credentialHeaders, orderMessage, postOrder, type RunningGateway, runGateway } from './running-gateway.ts';

let gateway: RunningGateway;
beforeAll(async () => {
  gateway = await runGateway();
});
afterAll(() => gateway?.close());

/** `pnpm merchant` on the running gateway's database: its exit code and its lines. */
function merchant(...args: string[]) {
  return runProgram('src/cli/merchant.ts', args, { PATH: process.env.PATH, DATABASE_URL: gateway.databaseUrl });
}

async function statusWith(clientId: string, clientSecret: string, order = validOrderInput()): Promise<number> {
  return (await postOrder({ url: gateway.url, credentials: { clientId, clientSecret } }, order)).status;
}

test('secrets are added without downtime, at most five, and stop within a second when they are revoked', async () => {
  const { client_id: clientId, client_secret: first } = JSON.parse(
    (await merchant('create', '--name', 'Shop', '--json')).stdout,
  );
  expect(await statusWith(clientId, first)).toBe(201);
  const secrets: { number: number; client_secret: string }[] = [];
  for (let count = 0; count < 4; count += 1) {
    secrets.push(JSON.parse((await merchant('secret', 'add', clientId, '--json')).stdout));
  }
  for (const { client_secret } of secrets) expect(await statusWith(clientId, client_secret)).toBe(200);
  const sixth = await merchant('secret', 'add', clientId);
  expect([sixth.code, sixth.stdout]).toEqual([1, '']);
  expect(sixth.stderr).toContain('has 5 secrets');

  const revoked = secrets[0];
  if (revoked === undefined) throw new Error('no secret was added');
  expect((await merchant('secret', 'revoke', clientId, String(revoked.number))).code).toBe(0);
  // The promise is one second; the command itself has used a part of it.
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  expect(await statusWith(clientId, revoked.client_secret)).toBe(401);
  expect(await statusWith(clientId, first)).toBe(200);
  const listed = (await merchant('secret', 'list', clientId, '--json')).stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(listed.map(({ ends_at }) => ends_at !== null)).toEqual([false, true, false, false, false]);
  expect(JSON.stringify(listed)).not.toContain('sk_');
}, 60_000);

test('a secret with an end works until then', async () => {
  const { client_id: clientId } = JSON.parse((await merchant('create', '--name', 'Ending', '--json')).stdout);
  const ends = new Date(Date.now() + 3_000).toISOString();
  const { client_secret: ending } = JSON.parse(
    (await merchant('secret', 'add', clientId, '--ends', ends, '--json')).stdout,
  );
  expect(await statusWith(clientId, ending)).toBe(201);
  await expect.poll(() => statusWith(clientId, ending), { interval: 200 }).toBe(401);
  expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(ends));
}, 60_000);

test('a secret that has ended can not be brought back to life', async () => {
  const { client_id: clientId } = JSON.parse((await merchant('create', '--name', 'Ended', '--json')).stdout);
  const { number, client_secret: secret } = JSON.parse((await merchant('secret', 'add', clientId, '--json')).stdout);
  expect((await merchant('secret', 'revoke', clientId, `${number}`)).code).toBe(0);
  const again = await merchant('secret', 'revoke', clientId, `${number}`, '--ends', '2099-01-31T12:00:00Z');
  const told = `Secret ${number} of ${clientId} has ended already, and stays so.\n`;
  expect(again).toEqual({ code: 1, stdout: '', stderr: told });
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  expect(await statusWith(clientId, secret)).toBe(401);
}, 60_000);

test('a merchant that requires checksums has every other one refused', async () => {
  const { client_id: clientId, client_secret: clientSecret } = JSON.parse(
    (await merchant('create', '--name', 'Strict', '--json')).stdout,
  );
  expect((await merchant('checksum', 'required', clientId)).code).toBe(0);
  const refused = await postOrder({ url: gateway.url, credentials: { clientId, clientSecret } });
  expect(await refused.json()).toMatchObject({
    code: 'invalid_order',
    errors: [{ field: 'order_checksum', code: 'not_allowed' }],
  });
  expect((await merchant('checksum', 'versioned', clientId)).code).toBe(0);
  await expect.poll(() => statusWith(clientId, clientSecret)).toBe(201);
}, 60_000);

test('a checksum verifies with the secret of its own request, whichever other ones work too', async () => {
  const { client_id: clientId, client_secret: first } = JSON.parse(
    (await merchant('create', '--name', 'Two Secrets', '--json')).stdout,
  );
  const { client_secret: second } = JSON.parse((await merchant('secret', 'add', clientId, '--json')).stdout);
  const order = (checksumSecret: string) =>
    validOrderInput({ order_checksum: checksumOf(validOrderFields(), checksumSecret) });
  const service = createClient(OrderService, createGrpcTransport({ baseUrl: gateway.grpcUrl }));
  const grpcCodeWith = (clientSecret: string, input: ReturnType<typeof order>) =>
    service
      .createOrder(orderMessage(input.order_id, { order_checksum: input.order_checksum }), {
        headers: credentialHeaders({ clientId, clientSecret }),
      })
      .then(() => 'OK')
      .catch((error: unknown) => ConnectError.from(error).findDetails(ErrorInfoSchema)[0]?.reason);
  for (const [own, other] of [[second, first] as const, [first, second] as const]) {
    expect(await statusWith(clientId, own, order(other))).toBe(400);
    expect(await grpcCodeWith(own, order(other))).toBe('checksum_mismatch');
    expect(await statusWith(clientId, own, order(own))).toBe(own === second ? 201 : 200);
    expect(await grpcCodeWith(own, order(own))).toBe('OK');
  }
}, 60_000);

test('the database keeps nothing of a secret but its SHA-256', async () => {
  const { client_id: clientId, client_secret: first } = JSON.parse(
    (await merchant('create', '--name', 'Kept', '--json')).stdout,
  );
  const { client_secret: second } = JSON.parse((await merchant('secret', 'add', clientId, '--json')).stdout);
  expect(await statusWith(clientId, second)).toBe(201);
  const sql = postgres(gateway.databaseUrl, { max: 1 });
  const tables = await sql`select table_name as name from information_schema.tables where table_schema = 'public'`;
  const rows = await Promise.all(tables.map(({ name }) => sql`select kept::text as text from ${sql(name)} kept`));
  await sql.end({ timeout: 1 });
  const kept = JSON.stringify(rows);
  for (const secret of [first, second]) {
    expect(kept).not.toContain(secret);
    expect(kept).not.toContain(Buffer.from(secret).toString('hex'));
    expect(kept).toContain(createHash('sha256').update(secret).digest('hex'));
  }
}, 60_000);

test('the list tells every merchant and no secret', async () => {
  await merchant('create', '--name', 'Listed "Shop"', '--json');
  const { stdout } = await merchant('list', '--json');
  const names = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).name);
  expect(names).toContain('Listed "Shop"');
  expect(names).toContain('Test Shop');
  expect(stdout).not.toContain('sk_');
}, 60_000);

test('an unknown client and a command that is none are told in words, with exit code 1', async () => {
  const unknown = await merchant('secret', 'list', 'app_000000000000000000000000');
  expect(unknown).toEqual({ code: 1, stdout: '', stderr: 'There is no client app_000000000000000000000000.\n' });
  const destroyed = await merchant('destroy');
  expect(destroyed).toMatchObject({ code: 1, stdout: '' });
  expect(destroyed.stderr).toMatch(/^There is no command destroy\.\n\nUsage: pnpm merchant COMMAND\n/);
}, 60_000);

test('the usage is there for who asks for it', async () => {
  const helped = await merchant('--help');
  expect(helped).toMatchObject({ code: 0, stderr: '' });
  expect(helped.stdout).toMatch(/^Usage: pnpm merchant COMMAND\n/);
}, 60_000);
