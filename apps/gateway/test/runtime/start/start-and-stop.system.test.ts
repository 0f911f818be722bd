import { mkdir } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { OrderService } from '@order-gateway/contract/gateway/v1/order_service_pb';
import { Health, HealthCheckResponse_ServingStatus } from '@order-gateway/contract/health/v1/health_pb';
import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import { afterEach, expect, test } from 'vitest';
import { mustSkip } from '../../../../../tools/skip-if-missing.ts';
import { listen } from '../../../../../tools/test-resources.ts';
import {
  endProcesses,
  type GatewayProcess,
  isAlive,
  launch,
  newClusterDir,
  newDatabase,
  newDataDir,
  postgresPid,
  runProgram,
  startOnNewDatabase,
  startProcess,
  stopGracefully,
} from '../../helpers/gateway-process.ts';
import { grpcClient } from '../../helpers/grpc/rpc-clients.ts';
import { postHead, statusesOf, textOf } from '../../helpers/raw-http.ts';
import { createOrder, credentialHeaders, postOrder, readOrder } from '../../helpers/send-order.ts';

afterEach(endProcesses);

test('an order survives kill -9 of the gateway and of PostgreSQL right after its 201', async () => {
  const dataDir = await newClusterDir();
  const first = await startProcess({ DATA_DIR: dataDir });
  const credentials = await first.demoCredentials();
  const created = await postOrder({ url: first.url, credentials });
  expect(created.status).toBe(201);
  const pid = await postgresPid(dataDir);
  first.child.kill('SIGKILL');
  process.kill(pid, 'SIGKILL');
  await first.exited;

  const second = await startProcess({ DATA_DIR: dataDir });
  expect(await second.demoCredentials()).toEqual(credentials);
  const replayed = await postOrder({ url: second.url, credentials });
  expect(replayed.status).toBe(200);
  // The link contains the port, which has changed.
  const { payment_link: _, ...stored } = await readOrder(replayed);
  expect(await created.json()).toMatchObject(stored);
});

test('gateways restart a PostgreSQL that exits, keep all orders, and leave no process when the last one stops', async ({
  skip,
}) => {
  const dataDir = await newClusterDir();
  const starter = await startProcess({ DATA_DIR: dataDir });
  const joined = await startProcess({ DATA_DIR: dataDir });
  const credentials = await starter.demoCredentials();
  let orders = 0;
  const created: { order: object; body: object }[] = [];
  const createOne = async ({ url }: GatewayProcess) => {
    const order = validOrderInput({ order_id: `order-${orders++}` });
    const response = await postOrder({ url, credentials }, order);
    const body = (await response.json()) as object;
    if (response.status === 201) created.push({ order, body });
    else expect(body).toMatchObject({ status: 503, code: 'unavailable' });
  };
  const restarts = () =>
    [starter, joined].flatMap(({ lines }) => lines.filter((line) => line.includes('PostgreSQL restarted'))).length;
  await createOne(starter);
  await createOne(joined);
  let pid = await postgresPid(dataDir);
  // A crash, and a graceful stop.
  for (const [index, signal] of (['SIGKILL', 'SIGINT'] as const).entries()) {
    const killed = pid;
    process.kill(killed, signal);
    // One gateway restarts PostgreSQL, and the other one shares it.
    const restarted = async () => {
      await Promise.all([createOne(starter), createOne(joined)]);
      pid = await postgresPid(dataDir).catch(() => killed);
      return pid !== killed && restarts() > index;
    };
    await expect.poll(restarted).toBe(true);
    await expect.poll(() => isAlive(killed)).toBe(false);
    for (const gateway of [starter, joined]) {
      const before = created.length;
      await expect.poll(() => createOne(gateway).then(() => created.length)).toBeGreaterThan(before);
    }
  }
  for (const { order, body } of created) {
    const replayed = await postOrder({ url: starter.url, credentials }, order);
    const { payment_link: _, ...stored } = await readOrder(replayed);
    expect(replayed.status).toBe(200);
    expect(body).toMatchObject(stored);
  }
  await stopGracefully(starter.child, skip);
  await createOrder({ url: joined.url, credentials }, 'joined');
  // A terminal that is closed sends this signal.
  await stopGracefully(joined.child, skip, { signal: 'SIGHUP' });
  await expect.poll(() => isAlive(pid)).toBe(false);
});

test('SIGTERM lets a request in flight finish, stops PostgreSQL, and ends the gateway with exit code 0 after the drain delay', async ({
  skip,
}) => {
  const dataDir = await newClusterDir();
  const drainDelayMs = 500;
  const gateway = await startProcess({ DATA_DIR: dataDir, DRAIN_DELAY_MS: String(drainDelayMs) });
  const credentials = await gateway.demoCredentials();
  const pid = await postgresPid(dataDir);
  const body = JSON.stringify(validOrderInput());
  const socket = connect(gateway.httpPort, '127.0.0.1');
  const response = textOf(socket);
  socket.write(postHead({ credentials }, '/order', `content-length: ${body.length}`) + body.slice(0, 100));
  // When another connection gets a response, the gateway has read the headers on the first one.
  await postOrder({ url: gateway.url, credentials }, '{}');
  const stoppedAt = performance.now();
  await stopGracefully(gateway.child, skip, {
    async whileStopping() {
      await expect.poll(() => gateway.lines.join('\n')).toContain('"stopping"');
      socket.write(body.slice(100));
      expect(statusesOf(await response)).toEqual(['201']);
    },
  });
  expect(performance.now() - stoppedAt).toBeGreaterThan(drainDelayMs);
  // The process stays listed until the system has reaped it.
  await expect.poll(() => isAlive(pid)).toBe(false);
});

test('after SIGTERM, health checks fail, requests are served for the drain delay, and a second signal ends the gateway', async () => {
  const gateway = await startOnNewDatabase({ DRAIN_DELAY_MS: '600000' });
  const health = grpcClient(Health, gateway);
  await expect.poll(async () => (await health.check({})).status).toBe(HealthCheckResponse_ServingStatus.SERVING);
  gateway.child.kill('SIGTERM');
  await expect.poll(async () => (await fetch(`${gateway.url}/health/ready`)).status).toBe(503);
  expect((await health.check({})).status).toBe(HealthCheckResponse_ServingStatus.NOT_SERVING);
  // On a busy machine, the first order of a gateway can miss its deadline.
  await expect.poll(async () => (await postOrder(gateway)).status).toBeOneOf([200, 201]);
  expect((await postOrder(gateway)).headers.get('connection')).toBe('keep-alive');
  gateway.child.kill('SIGTERM');
  expect(await gateway.exited).toBe(1);
});

test.for([
  // The gateway has to create a cluster. The command gets a folder that already has one.
  ['the gateway', 'src/main.ts', [], newDataDir],
  ['a merchant command', 'src/cli/merchant.ts', ['create', '--name', 'Shop'], newClusterDir],
] as const)('no process remains after %s gets SIGTERM while PostgreSQL starts', async (program, { skip }) => {
  const [, script, args, newFolder] = program;
  const dataDir = await newFolder();
  const { child } = launch([script, ...args], { DATA_DIR: dataDir });
  child.stdout?.resume();
  // On a busy machine, a command may end before the test detects that PostgreSQL has started.
  const started = () => child.exitCode ?? postgresPid(dataDir).catch(() => 'none');
  await expect.poll(started, { interval: 5 }).not.toBe('none');
  await stopGracefully(child, skip);
  await expect(postgresPid(dataDir)).rejects.toThrow();
});

test('a merchant can be created whether or not the gateway runs, and can create orders immediately', async () => {
  const dataDir = await newClusterDir();
  const createMerchantNamed = (name: string) =>
    runProgram('src/cli/merchant.ts', ['create', '--name', name, '--json'], { DATA_DIR: dataDir });
  const before = await createMerchantNamed('Early Shop');
  expect(before.code).toBe(0);
  const gateway = await startProcess({ DATA_DIR: dataDir });
  const during = await createMerchantNamed('Late Shop');
  for (const { stdout } of [before, during]) {
    const { client_id: clientId, client_secret: clientSecret } = JSON.parse(stdout);
    const created = await postOrder({ url: gateway.url, credentials: { clientId, clientSecret } });
    expect(created.status).toBe(201);
  }
});

const hasIpv6 = Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === '::1'));
mustSkip('listening on ::1', hasIpv6 ? undefined : 'this machine has no IPv6');

test.each([['0.0.0.0', '0.0.0.0', 'localhost'], ...(hasIpv6 ? [['::1', '[::1]', '[::1]']] : [])])(
  'with HOST=%s, both ports and the base URL work as the ready line says, and the log warns of an unsafe address',
  async (HOST, host, baseHost) => {
    const gateway = await startOnNewDatabase({ HOST });
    const { credentials } = gateway;
    const urls = [host, baseHost].map((name) => `http://${name}:${gateway.httpPort}`);
    expect([gateway.url, gateway.baseUrl]).toEqual(urls);
    const isLoopback = host === '[::1]';
    expect(gateway.lines.some((line) => line.includes('credentials are sent without TLS'))).toBe(!isLoopback);
    // The database server of the tests runs without fsync.
    const durabilityWarnings = gateway.lines.filter((line) => line.includes('can lose acknowledged orders'));
    expect(durabilityWarnings).toEqual([expect.stringContaining('"off":["fsync"')]);
    for (const url of [gateway.url, gateway.baseUrl]) {
      // On an overloaded machine, a call can exceed its deadline.
      await expect.poll(async () => (await postOrder({ url, credentials })).status).toBeLessThan(300);
    }
    const order = { case: 'orderId', value: validOrderInput().order_id } as const;
    const headers = credentialHeaders(credentials);
    const found = await grpcClient(OrderService, gateway).getOrder({ order }, { headers });
    expect(found.order?.paymentLink.startsWith(`${gateway.baseUrl}/payment/`)).toBe(true);
  },
);

test('an unusable host, an unreachable database and invalid variables are reported in one line each', async () => {
  const { databaseUrl } = await newDatabase();
  const runMain = (variables: Record<string, string>) =>
    runProgram('src/main.ts', [], { DATABASE_URL: databaseUrl, ...variables });
  expect(await runMain({ HOST: '192.0.2.1' })).toMatchObject({
    code: 1,
    stderr: `HOST 192.0.2.1 can't be used (EADDRNOTAVAIL). Set HOST to an address of this machine.\n`,
  });
  expect(await runMain({ DATABASE_URL: 'postgres://u:geheim@127.0.0.1:1/x' })).toMatchObject({
    code: 1,
    stderr: `The database 127.0.0.1:1/x can't be used: no connection to the database: ECONNREFUSED\n`,
  });
  const variables = { HTTP_PORT: 'x', BASE_URL: 'ftp://x', DATABASE_URL: 'y' };
  const wrong = await runMain(variables);
  expect(wrong.code).toBe(1);
  const reported = wrong.stderr
    .trimEnd()
    .split('\n')
    .map((line) => line.split(' ')[0]);
  expect(reported).toEqual(Object.keys(variables));
});

test('a start that loses its database after checking the schema prints one line', async () => {
  const { databaseUrl } = await newDatabase();
  const { hostname, port } = new URL(databaseUrl);
  let connections = 0;
  const proxy = createServer((client) => {
    connections += 1;
    if (connections > 1) return void client.destroy();
    const server = connect(Number(port), hostname);
    for (const [from, to] of [[client, server] as const, [server, client] as const]) {
      from.pipe(to);
      from.on('error', () => to.destroy());
    }
  });
  const url = Object.assign(new URL(databaseUrl), { port: await listen(proxy), hostname: '127.0.0.1' });
  const { code, stderr } = await runProgram('src/main.ts', [], { DATABASE_URL: url.href, MIGRATE: 'off' });
  expect({ code, lines: stderr.trimEnd().split('\n').length }).toEqual({ code: 1, lines: 1 });
  expect(connections).toBeGreaterThan(1);
});

test('a start that cannot read its demo merchant exits before it is ready, and stops PostgreSQL', async () => {
  const dataDir = await newClusterDir();
  // The file can't be read, because a folder is in its place.
  await mkdir(join(dataDir, 'demo-merchant.json'));
  const { code, stdout, stderr } = await runProgram('src/main.ts', [], { DATA_DIR: dataDir });
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toMatch(/^The demo merchant in [^\n]+ could not be found or created: EISDIR[^\n]+\n$/);
  await expect(postgresPid(dataDir)).rejects.toThrow();
});
