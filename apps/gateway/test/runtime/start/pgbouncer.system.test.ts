import { execFileSync } from 'node:child_process';
import { mkdtempDisposable, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { liveSecretsMax } from '@order-gateway/domain/accounts';
import type { BaseUrl } from '@order-gateway/domain/links';
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
import { addBrandCommand } from '../../../src/cli/brand-command.ts';
import { program as checkoutProgram } from '../../../src/cli/checkout.ts';
import { program as merchantProgram } from '../../../src/cli/merchant.ts';
import { checkoutCommands, merchantCommands } from '../../../src/cli/merchant-commands.ts';
import { type OpenOperator, openOperator } from '../../../src/cli/operator.ts';
import { program as ordersProgram } from '../../../src/cli/orders.ts';
import { addWebhookCommands } from '../../../src/cli/webhook-commands.ts';
import type { OpenAccounts } from '../../../src/cli/with-database.ts';
import { readConfig } from '../../../src/config.ts';
import { createSigningSecrets } from '../../../src/runtime/secrets/signing-secrets.ts';
import { createFixtureMerchants } from '../../helpers/fixture-merchants.ts';
import { runProgram } from '../../helpers/gateway-process.ts';
import {
  type RunningGateway,
  startGateway,
  testSecretsKey,
  testSecretsKeyText,
} from '../../helpers/running-gateway.ts';
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
      const run = commandsOn(gateway.databaseUrl);
      const shop = await gateway.newMerchant();
      const { clientId } = shop.credentials;
      const set = ['merchant', 'webhook', 'set', clientId, 'https://shop.example.com', '--json'];
      expect(JSON.parse(await run(set))).toHaveProperty('signing_secret');
      await cancelNewOrder(shop, 'cancelled');
      const [delivery] = JSON.parse(await run(['merchant', 'webhook', 'deliveries', clientId, '--json'])).deliveries;
      const secret = JSON.parse(await run(['merchant', 'secret', 'add', clientId, '--json']));
      const checkout = JSON.parse(await run(['checkout', 'create', '--name', 'Cards', '--json']));
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
        'checkout late-days': [checkout.client_id, '3'],
        'checkout refunds': [checkout.client_id, 'on'],
      };
      // Its message can't be delivered.
      await expect(run(['merchant', 'webhook', 'test', clientId])).rejects.toThrow('The message was not delivered');
      for (const [name, args] of Object.entries(argsOf))
        expect(await run([...name.split(' '), ...args]), name).not.toBe('');
      expect([...commandNames(checkoutProgram), ...commandNames(merchantProgram)]).toEqual(
        [...Object.keys(argsOf), 'merchant webhook test'].sort(),
      );

      const variables = { DATABASE_URL: gateway.databaseUrl, SECRETS_KEY: testSecretsKeyText };
      const file = join(folder.path, 'orders.ndjson');
      const orderArgs = {
        show: ['cancelled'],
        refused: [],
        export: [file, '--before', '2999-01-01T00:00:00Z'],
        import: [file],
        erase: [clientId, 'cancelled'],
      };
      for (const [name, args] of Object.entries(orderArgs)) {
        expect(await runProgram('src/cli/orders.ts', [name, ...args], variables), name).toMatchObject({ code: 0 });
      }
      const ofNoOrder = { release: ['unknown'], 'refund-fail': ['unknown', 'refund-1'] };
      for (const [name, args] of Object.entries(ofNoOrder)) {
        expect(await runProgram('src/cli/orders.ts', [name, ...args], variables), name).toMatchObject({
          code: 1,
          stderr: expect.stringContaining('There is no such order.'),
        });
      }
      expect(commandNames(ordersProgram)).toEqual(
        Object.keys({ ...orderArgs, ...ofNoOrder })
          .map((name) => `orders ${name}`)
          .sort(),
      );
      expect(await runProgram('src/cli/migrate.ts', [], variables)).toMatchObject(
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

/** Runs the commands of `merchant` and `checkout` in this process. The function returns their output. */
function commandsOn(url: string) {
  const settings = {
    signingSecrets: createSigningSecrets([testSecretsKey]),
    webhookAddresses: 'public',
    baseUrl: () => 'https://pay.example' as BaseUrl,
  } as const;
  const withAccounts: OpenAccounts = async (work) => {
    await using accounts = openAccountAdmin({ url });
    await work(accounts, readConfig({ BASE_URL: 'http://127.0.0.1:1' }));
  };
  const withOperator: OpenOperator = async (work, actor) => {
    await using operator = openOperator(url, settings, actor);
    await work(operator);
  };
  return async ([name, ...args]: readonly string[]): Promise<string> => {
    const lines: string[] = [];
    const print = (line: string) => lines.push(line);
    const program = (name === 'merchant' ? merchantCommands : checkoutCommands)(withAccounts, print);
    if (name === 'merchant') {
      addBrandCommand(program, withOperator, print);
      addWebhookCommands(program, withOperator, print);
    }
    for (const command of allOf(program)) command.exitOverride();
    await program.parseAsync(args, { from: 'user' });
    return lines.join('\n');
  };
}

function allOf(command: Command): Command[] {
  return [command, ...command.commands.flatMap(allOf)];
}
