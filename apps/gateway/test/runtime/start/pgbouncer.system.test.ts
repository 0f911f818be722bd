import { execFileSync } from 'node:child_process';
import { mkdtempDisposable, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { liveSecretsMax } from '@order-gateway/domain/accounts';
import { endpointsMax } from '@order-gateway/domain/webhooks';
import { loadFixtures } from '@order-gateway/fixtures';
import { differences, isCarried, type Merchants, sendFixture, waitsForTime } from '@order-gateway/fixtures/replay';
import { type CallResponse, openClients } from '@order-gateway/fixtures/wire';
import { openAccountAdmin } from '@order-gateway/postgres/accounts';
import { inspectServer } from '@order-gateway/postgres/connections';
import { startPgBouncer } from '@order-gateway/postgres/testing/pgbouncer';
import { runQuery } from '@order-gateway/postgres/testing/run-query';
import { useTestDatabase } from '@order-gateway/postgres/testing/test-database';
import type { Command } from 'commander';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { missing, mustSkip } from '../../../../../tools/skip-if-missing.ts';
import { program as checkout } from '../../../src/cli/checkout.ts';
import { program as merchant } from '../../../src/cli/merchant.ts';
import { program as migrate } from '../../../src/cli/migrate.ts';
import { program as orders } from '../../../src/cli/orders.ts';
import { createFixtureMerchants } from '../../helpers/fixture-merchants.ts';
import { runCommand } from '../../helpers/run-command.ts';
import { type RunningGateway, startGateway, testSecretsKeyText } from '../../helpers/running-gateway.ts';
import { cancelNewOrder, postJson } from '../../helpers/send-order.ts';

// Runs everything through PgBouncer, configured as docs/operations.md says.

const database = useTestDatabase();

const isSkipped = mustSkip('the gateway behind PgBouncer', missing('pgbouncer'));

/** Older versions of PgBouncer share sessions, but not the statements that are prepared in them. */
const isTooOld =
  !isSkipped && Number(/\d+\.(\d+)/.exec(execFileSync('pgbouncer', ['--version'], { encoding: 'utf8' }))?.[1]) < 21;
const skipsShared = mustSkip('shared sessions', isTooOld ? 'PgBouncer is older than 1.21' : undefined);

/** The startup parameters that PgBouncer ignores according to docs/operations.md, as a line of its configuration. */
async function documentedIgnored(): Promise<string> {
  const [, ignored = ''] =
    /`(ignore_startup_parameters = [^`]+)`/.exec(
      (await readFile(join(import.meta.dirname, '../../../../../docs/operations.md'), 'utf8')).replaceAll(/\s+/g, ' '),
    ) ?? [];
  return ignored;
}

const programs = [merchant, checkout, orders];

async function startDocumented(databaseUrl: string, poolMode: string) {
  return startPgBouncer(
    databaseUrl,
    `pool_mode = ${poolMode}\n${await documentedIgnored()}${isTooOld ? '' : '\nmax_prepared_statements = 200'}`,
  );
}

describe.skipIf(isSkipped).each(skipsShared ? ['session'] : ['session', 'transaction'])(
  'with pool_mode = %s',
  (poolMode) => {
    let gateway: RunningGateway;
    beforeAll(async () => {
      await using starting = new AsyncDisposableStack();
      const through = async (databaseUrl: string) =>
        starting.use(await startDocumented(databaseUrl, poolMode)).through(databaseUrl);
      gateway = await startGateway({ webhookAddresses: 'public', through });
      starting.defer(() => gateway.close());
      const cleanup = starting.move();
      return () => cleanup.disposeAsync();
    });

    test('every command works', async () => {
      await using folder = await mkdtempDisposable(join(tmpdir(), 'pgbouncer-commands-'));
      const variables = {
        DATABASE_URL: gateway.databaseUrl,
        SECRETS_KEY: testSecretsKeyText,
        BASE_URL: 'http://127.0.0.1:1',
        ...(poolMode === 'transaction' && { MIGRATE: 'off' }),
      };
      const run = ([name, ...args]: readonly string[]) =>
        runCommand(programs.find((program) => program.name() === name) ?? migrate, args, variables);
      const outputOf = async (args: readonly string[]) => (await run(args)).stdout;
      const shop = await gateway.newMerchant();
      const { clientId } = shop.credentials;
      const set = ['merchant', 'webhook', 'set', clientId, 'https://shop.example.com', '--json'];
      expect(JSON.parse(await outputOf(set))).toHaveProperty('signing_secret');
      await cancelNewOrder(shop, 'cancelled');
      const [delivery] = JSON.parse(
        await outputOf(['merchant', 'webhook', 'deliveries', clientId, '--json']),
      ).deliveries;
      const secret = JSON.parse(await outputOf(['merchant', 'secret', 'add', clientId, '--json']));
      const cards = JSON.parse(await outputOf(['checkout', 'create', '--name', 'Cards', '--json']));
      const file = join(folder.path, 'orders.ndjson');
      const argsOf: Readonly<Record<string, readonly string[]>> = {
        'merchant create': ['--name', 'Second Shop'],
        'merchant list': [],
        'merchant rename': [clientId, '--name', 'Renamed'],
        'merchant console': [clientId, '--name', 'Alice'],
        'merchant checksum': [clientId, 'required'],
        'merchant lifetime': [clientId, '24h'],
        'merchant limit': [clientId, '100'],
        'merchant log': [],
        'merchant disable': [clientId],
        'merchant enable': [clientId],
        'merchant secret add': [clientId],
        'merchant secret list': [clientId],
        'merchant secret revoke': [clientId, `${secret.id}`],
        'merchant brand': [clientId, '--color', '#123456'],
        'merchant webhook set': [clientId, 'https://other.example.com'],
        'merchant webhook show': [clientId],
        'merchant webhook rotate': [clientId],
        'merchant webhook deliveries': [clientId],
        'merchant webhook redeliver': [clientId, delivery.event_id],
        'merchant webhook reencrypt': [],
        'merchant webhook remove': [clientId],
        'checkout create': ['--name', 'Transfers'],
        'checkout late-days': [cards.client_id, '3'],
        'checkout refunds': [cards.client_id, 'on'],
        'orders show': ['cancelled'],
        'orders refused': [],
        'orders export': [file, '--before', '2999-01-01T00:00:00Z'],
        'orders import': [file],
        'orders erase': [clientId, 'cancelled'],
      };
      const failing: Readonly<Record<string, readonly [args: readonly string[], message: string]>> = {
        'merchant webhook test': [[clientId], 'The message was not delivered'],
        'orders release': [['unknown'], 'There is no such order.'],
        'orders refund-fail': [['unknown', 'refund-1'], 'There is no such order.'],
      };
      for (const [name, [args, message]] of Object.entries(failing))
        expect(await run([...name.split(' '), ...args]), name).toMatchObject({
          code: 1,
          stderr: expect.stringContaining(message),
        });
      for (const [name, args] of Object.entries(argsOf))
        expect(await run([...name.split(' '), ...args]), name).toMatchObject({
          code: 0,
          stdout: expect.stringMatching(/./),
        });
      expect(programs.flatMap(commandNames).sort()).toEqual(Object.keys({ ...argsOf, ...failing }).sort());
      expect(await run(['migrate'])).toMatchObject(
        poolMode === 'session'
          ? { code: 0 }
          : { code: 1, stderr: expect.stringContaining('its pooler shares sessions') },
      );
    });

    test('every operation responds as two of its fixtures promise', async () => {
      const { fixtures, validOrder } = await loadFixtures();
      const merchants: Merchants = await createFixtureMerchants(gateway);
      const clients = openClients({ httpUrl: gateway.url, grpcAddress: new URL(gateway.grpcUrl).host });
      onTestFinished(() => {
        for (const client of Object.values(clients)) client.close();
      });
      const jsonFixtures = fixtures.filter((fixture) => isCarried(fixture, 'json') && !waitsForTime(fixture));
      const byOperation = Map.groupBy(jsonFixtures, ({ calls }) => calls.at(-1)?.operation);
      expect(byOperation.size).toBeGreaterThan(20);
      const sent = [...byOperation.values()].flatMap((ofOperation) => ofOperation.slice(0, 2));
      for (const fixture of sent) {
        const target = { clients, merchants, orderId: `pooled-${fixture.file}.`, validOrder };
        let first: CallResponse | undefined;
        for await (const { expect: expected, sent, response } of sendFixture(fixture, 'json', target)) {
          const context = { sent, first, secrets: [], baseUrl: gateway.baseUrl, nowMs: Date.now() };
          expect.soft(differences(expected, response, context), fixture.file).toEqual([]);
          first ??= response;
        }
      }
    });

    test('no merchant gets more than five secrets, even if several processes add them at the same time', async () => {
      const { clientId } = await gateway.accounts.create('Shop');
      const admins = Array.from({ length: 3 }, () => openAccountAdmin({ url: gateway.databaseUrl }));
      onTestFinished(async () => void (await Promise.all(admins.map((admin) => admin.close()))));
      const added = await Promise.all(
        Array.from({ length: 12 }, (_, index) => admins[index % admins.length]?.addSecret(clientId, null)),
      );
      expect(added.filter((outcome) => outcome?.kind === 'added')).toHaveLength(liveSecretsMax - 1);
    });

    test('no merchant gets more than five endpoints, even if several are added at the same time', async () => {
      const shop = await gateway.newMerchant();
      const added = await Promise.all(
        Array.from({ length: 8 }, () => postJson(shop, '/webhook_endpoints', { url: 'https://shop.example.com' })),
      );
      const statuses = added.map(({ status }) => status).sort();
      expect(statuses).toEqual([...Array(endpointsMax).fill(201), 409, 409, 409]);
    });

    test('the start names the settings that PgBouncer ignores', async () => {
      expect((await inspectServer(gateway.databaseUrl)).withheldSettings).toEqual({
        ...(poolMode === 'transaction' && { jit: 'off' }),
        plan_cache_mode: 'force_custom_plan',
        statement_timeout: '4000',
      });
    });
  },
);

test.skipIf(isSkipped)('the start names no settings if the database has them', async () => {
  const name = new URL(database.url).pathname.slice(1);
  for (const setting of ['plan_cache_mode = force_custom_plan', "statement_timeout = '4s'"])
    await runQuery(database.url, `alter database "${name}" set ${setting}`);
  await using pooler = await startDocumented(database.url, 'session');
  expect((await inspectServer(pooler.through(database.url))).withheldSettings).toEqual({});
});

// With default_pool_size = 1, one connection waits for the session of another.
test.skipIf(isSkipped).each([64, 1])(
  'a start fails if PgBouncer shares up to %i sessions without prepared statements',
  async (poolSize) => {
    await using pooler = await startPgBouncer(
      database.url,
      `pool_mode = transaction\ndefault_pool_size = ${poolSize}\n${await documentedIgnored()}${isTooOld ? '' : '\nmax_prepared_statements = 0'}`,
    );
    await expect(inspectServer(pooler.through(database.url))).rejects.toThrow(
      'its pooler shares sessions, but not their prepared statements: set pool_mode',
    );
  },
);

/** Returns the names of a program's commands, such as `merchant secret add`, in alphabetical order. */
function commandNames(program: Command): string[] {
  const namesOf = ({ name, commands }: { name: string; commands: readonly Command[] }): string[] =>
    commands.length === 0
      ? [name]
      : commands.flatMap((command) => namesOf({ name: `${name} ${command.name()}`, commands: command.commands }));
  return namesOf({ name: program.name(), commands: program.commands }).sort();
}
