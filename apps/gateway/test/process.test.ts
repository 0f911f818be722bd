import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { validOrderInput } from '@gateway/domain/testing/order-fields';
import { afterEach, expect, test } from 'vitest';
import { answerOf, postOrder } from './running-gateway.ts';

const folder = join(import.meta.dirname, '..');
const startLimitMs = 60_000;

interface GatewayProcess {
  readonly child: ChildProcess;
  readonly url: string;
  readonly lines: string[];
  stderr: string;
  readonly exited: Promise<number | null>;
}

const children: ChildProcess[] = [];
const dataDirs: string[] = [];

afterEach(async () => {
  for (const child of children.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill('SIGTERM');
    await once(child, 'exit');
  }
  for (const dataDir of dataDirs.splice(0)) {
    await killPostgres(dataDir, 'SIGQUIT');
    await rm(dataDir, { recursive: true, force: true, maxRetries: 5 });
  }
}, startLimitMs);

async function newDataDir(): Promise<string> {
  const dataDir = await mkdtemp(join(tmpdir(), 'gateway-process-'));
  dataDirs.push(dataDir);
  return dataDir;
}

function environment(dataDir: string, more: Record<string, string> = {}): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, DATA_DIR: dataDir, HTTP_PORT: '0', GRPC_PORT: '0', ...more };
}

/** Starts `main.ts` and waits for its ready line. */
async function startProcess(dataDir: string): Promise<GatewayProcess> {
  const child = spawn(process.execPath, ['src/main.ts'], { cwd: folder, env: environment(dataDir) });
  children.push(child);
  const lines: string[] = [];
  const told = { stderr: '' };
  child.stderr.on('data', (piece) => {
    told.stderr += piece;
  });
  const exited = once(child, 'exit').then(([code]) => code as number | null);
  const ready = new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      lines.push(line);
      const { msg, http_url } = JSON.parse(line);
      if (msg === 'ready') resolve(http_url);
    });
    exited.then((code) => reject(new Error(`the gateway ended with ${code}: ${told.stderr}`)));
  });
  const url = await ready;
  return {
    ...{ child, url, lines, exited },
    get stderr() {
      return told.stderr;
    },
  };
}

/** What a command prints and how it ends. */
async function runProgram(script: string, args: string[], env: NodeJS.ProcessEnv) {
  return new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
    execFile(
      process.execPath,
      [script, ...args],
      { cwd: folder, env, timeout: startLimitMs },
      (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr });
      },
    );
  });
}

async function postgresPid(dataDir: string): Promise<number | undefined> {
  const lockFile = await readFile(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8').catch(() => '');
  return Number(lockFile.split('\n')[0]) || undefined;
}

async function killPostgres(dataDir: string, signal: NodeJS.Signals): Promise<void> {
  const pid = await postgresPid(dataDir);
  if (pid === undefined || !isAlive(pid)) return;
  process.kill(pid, signal);
  await expect.poll(() => isAlive(pid), { timeout: 10_000 }).toBe(false);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** The demo merchant's credentials, as `start` printed them. */
async function demoCredentials({ stderr }: { stderr: string }) {
  const clientId = /x-client-id: +(\S+)/.exec(stderr)?.[1] ?? '';
  const clientSecret = /x-client-secret: +(\S+)/.exec(stderr)?.[1] ?? '';
  return { clientId, clientSecret };
}

async function withDemo(gateway: GatewayProcess) {
  await expect.poll(() => gateway.stderr, { timeout: 10_000 }).toContain('return_url');
  return { url: gateway.url, credentials: await demoCredentials(gateway) };
}

test('an order survives kill -9 of the gateway and of PostgreSQL right after its 201', async () => {
  const dataDir = await newDataDir();
  const first = await startProcess(dataDir);
  const merchant = await withDemo(first);
  const created = await postOrder(merchant, validOrderInput());
  expect(created.status).toBe(201);
  const pid = await postgresPid(dataDir);
  first.child.kill('SIGKILL');
  if (pid !== undefined) process.kill(pid, 'SIGKILL');
  await first.exited;

  const second = await startProcess(dataDir);
  const sameMerchant = await withDemo(second);
  expect(sameMerchant.credentials).toEqual(merchant.credentials);
  const replayed = await postOrder(sameMerchant, validOrderInput());
  expect(replayed.status).toBe(200);
  const { payment_link: _, ...kept } = await answerOf(replayed);
  expect(await created.json()).toMatchObject(kept);
}, 120_000);

test('SIGTERM lets a request under way finish, stops PostgreSQL and ends with 0', async () => {
  const dataDir = await newDataDir();
  const gateway = await startProcess(dataDir);
  const merchant = await withDemo(gateway);
  const pid = await postgresPid(dataDir);
  const body = JSON.stringify(validOrderInput());
  const sent = Promise.withResolvers<void>();
  const slowBody = new ReadableStream({
    async start(controller) {
      controller.enqueue(new TextEncoder().encode(body.slice(0, 100)));
      await sent.promise;
      controller.enqueue(new TextEncoder().encode(body.slice(100)));
      controller.close();
    },
  });
  const answer = fetch(`${merchant.url}/order`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-client-id': merchant.credentials.clientId,
      'x-client-secret': merchant.credentials.clientSecret,
    },
    body: slowBody,
    duplex: 'half',
  } as RequestInit);
  // An answered request on another connection shows that the first one's headers have been read by now.
  await postOrder(merchant, '{}');
  gateway.child.kill('SIGTERM');
  await expect.poll(() => gateway.lines.join('\n'), { timeout: 10_000 }).toContain('"stopping"');
  sent.resolve();
  expect((await answer).status).toBe(201);
  expect(await gateway.exited).toBe(0);
  expect(pid !== undefined && isAlive(pid)).toBe(false);
}, 120_000);

test('a merchant can be made while the gateway runs and while it does not, and works at once', async () => {
  const dataDir = await newDataDir();
  const before = await runProgram(
    'src/merchant.ts',
    ['create', '--name', 'Early Shop', '--json'],
    environment(dataDir),
  );
  expect(before.code).toBe(0);
  const gateway = await startProcess(dataDir);
  const during = await runProgram('src/merchant.ts', ['create', '--name', 'Late Shop', '--json'], environment(dataDir));
  for (const { stdout } of [before, during]) {
    const { client_id: clientId, client_secret: clientSecret } = JSON.parse(stdout);
    const created = await postOrder({ url: gateway.url, credentials: { clientId, clientSecret } });
    expect(created.status).toBe(201);
  }
}, 120_000);

test('a taken port, a database that is not there and a wrong configuration are told in plain lines', async () => {
  const dataDir = await newDataDir();
  const blocker = createServer().listen(0, '127.0.0.1');
  await once(blocker, 'listening');
  const address = blocker.address();
  const taken = typeof address === 'object' && address !== null ? String(address.port) : '';
  const portTaken = await runProgram('src/main.ts', [], environment(dataDir, { GRPC_PORT: taken }));
  blocker.close();
  expect(portTaken).toMatchObject({
    code: 1,
    stderr: `GRPC_PORT ${taken} can't be listened on: it is taken. Set GRPC_PORT to another port.\n`,
  });
  const noDatabase = await runProgram(
    'src/main.ts',
    [],
    environment(dataDir, { DATABASE_URL: 'postgres://u:geheim@127.0.0.1:1/x' }),
  );
  expect(noDatabase.code).toBe(1);
  expect(noDatabase.stderr).toMatch(/^The database 127\.0\.0\.1:1\/x can't be used: [^\n]+\n$/);
  expect(noDatabase.stderr).not.toContain('geheim');
  const wrong = await runProgram(
    'src/main.ts',
    [],
    environment(dataDir, { HTTP_PORT: 'x', BASE_URL: 'ftp://x', DATABASE_URL: 'y' }),
  );
  expect(wrong).toMatchObject({ code: 1 });
  expect(
    wrong.stderr
      .trimEnd()
      .split('\n')
      .map((line) => line.split(' ')[0]),
  ).toEqual(['HTTP_PORT', 'BASE_URL', 'DATABASE_URL']);
}, 120_000);
