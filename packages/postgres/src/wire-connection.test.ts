import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { startRelay } from '../testing/relay.ts';
import { startThrowawayPostgres, type ThrowawayPostgres } from '../testing/throwaway-postgres.ts';
import { openLane } from './lane.ts';
import { ConnectionCut, ServerError, StatementTimeout, statementFailure } from './statement-error.ts';
import { statementsOnWire, WireConnection } from './wire-connection.ts';

let server: ThrowawayPostgres;
let admin: postgres.Sql;

beforeAll(async () => {
  server = await startThrowawayPostgres();
  admin = postgres(server.url, { max: 1, onnotice: () => {} });
  await admin`create table kept (id int primary key, note text not null constraint short check (length(note) < 100000))`;
});

afterAll(async () => {
  await admin?.end({ timeout: 1 });
  await server?.stop();
});

const texts = {
  echo: 'select $1::text, $2::text',
  series: 'select place from generate_series(1, $1::int) place',
  half_way: 'select 10 / (3 - place) from generate_series(1, $1::int) place',
  keep: 'insert into kept values ($1::int, $2::text) on conflict do nothing returning id',
  notice: "select case when set_config('client_min_messages', 'debug5', false) <> '' then $1::text end",
  sleep: 'select pg_sleep($1::float8)::text',
};

type Name = keyof typeof texts;

let opened = 0;

/** Statements on a lane of their own. */
function runner(url = server.url) {
  opened += 1;
  const applicationName = `wire ${opened}`;
  const lane = openLane({ url, applicationName, connectionsMax: 1 }, (_db, connect) =>
    statementsOnWire(connect, texts),
  );
  onTestFinished(() => lane.close());
  const run = (name: Name, ...parameters: readonly (string | number)[]) =>
    lane.run((statement) => statement(name, parameters));
  return { run, applicationName };
}

const kill = (applicationName: string) =>
  admin`select pg_terminate_backend(pid, 5000) from pg_stat_activity where application_name = ${applicationName}`;

const failureOf = (running: Promise<unknown>) => running.then(() => undefined).catch((error: unknown) => error);

test('texts of every kind and length come back as they were sent, and rows in their order', async () => {
  const { run } = runner();
  const sent = [
    '',
    'plain',
    'ÄÖ€𝄞',
    "'; drop table kept; --",
    '\\ " {} , \n\t',
    'x'.repeat(300_000),
    '€'.repeat(50_000),
  ];
  for (const text of sent) expect(await run('echo', text, 'second column')).toEqual([text]);
  expect(await run('series', 3_000)).toEqual(Array.from({ length: 3_000 }, (_, at) => String(at + 1)));
  expect(await run('series', 0)).toEqual([]);
});

test('statements that are sent together are answered in their order, and one that fails fails alone', async () => {
  const { run } = runner();
  const outcomes = await Promise.allSettled([
    run('keep', 1, 'first'),
    run('keep', 1, 'again'),
    run('half_way', 5),
    run('keep', 2, 'x'.repeat(100_000)),
    run('keep', 3, 'last'),
  ]);
  expect(outcomes.map((outcome) => (outcome.status === 'fulfilled' ? outcome.value : outcome.reason.code))).toEqual([
    ['1'],
    [],
    '22012',
    '23514',
    ['3'],
  ]);
  expect([...(await admin`select id, note from kept order by id`)]).toEqual([
    { id: 1, note: 'first' },
    { id: 3, note: 'last' },
  ]);
});

test('an error has its code and the names of what was broken, and leaves nothing in the answer of the next', async () => {
  const { run } = runner();
  const error = await failureOf(run('keep', 4, 'x'.repeat(100_000)));
  expect(error).toBeInstanceOf(ServerError);
  expect(error).toMatchObject({ code: '23514', constraint_name: 'short', table_name: 'kept' });
  expect(await failureOf(run('half_way', 5))).toMatchObject({ code: '22012' });
  expect(await run('series', 1)).toEqual(['1']);
});

describe('whatever else the server says, and however it is cut', () => {
  test('notices and changed settings are passed over', async () => {
    const { run } = runner();
    // From here on the server tells of every transaction and every plan.
    expect(await run('notice', 'loud')).toEqual(['loud']);
    expect(await Promise.all([run('series', 2), run('echo', 'a', 'b')])).toEqual([['1', '2'], ['a']]);
  });

  test('answers come byte by byte', async () => {
    const relay = await startRelay(server.url, (piece) => Array.from(piece, (byte) => Buffer.of(byte)));
    onTestFinished(() => relay.close());
    const { run } = runner(relay.url);
    expect(await Promise.all([run('series', 20), run('echo', 'ÄÖ€𝄞', '')])).toEqual([
      Array.from({ length: 20 }, (_, at) => String(at + 1)),
      ['ÄÖ€𝄞'],
    ]);
    expect(await failureOf(run('half_way', 5))).toMatchObject({ code: '22012' });
  });

  /** A way to the server that says something before what the server says next, once, after `interrupt`. */
  async function startInterrupted(said: Buffer) {
    let isDue = false;
    const relay = await startRelay(server.url, (piece) => {
      const changed = isDue ? Buffer.concat([said, piece]) : piece;
      isDue = false;
      return [changed];
    });
    onTestFinished(() => relay.close());
    return {
      url: relay.url,
      interrupt: () => {
        isDue = true;
      },
    };
  }

  test.each([
    ['a message of no possible length', 'D\xff\xff\xff\xff'],
    ['a row without columns', 'D\0\0\0\x06\0\0'],
    ['an answer in an open transaction', 'Z\0\0\0\x05T'],
    ['an answer in a failed transaction', 'Z\0\0\0\x05E'],
  ])('%s ends the connection, and the next statement has another one', async (_, said) => {
    const { url, interrupt } = await startInterrupted(Buffer.from(said, 'latin1'));
    const { run } = runner(url);
    await run('series', 1);
    interrupt();
    expect(await Promise.all([failureOf(run('series', 1)), failureOf(run('series', 2))])).toEqual([
      expect.any(ConnectionCut),
      expect.any(ConnectionCut),
    ]);
    expect(await run('series', 1)).toEqual(['1']);
  });

  test('a statement that a pooler knows no more, which names no routine of PostgreSQL, is prepared anew', async () => {
    const { url, interrupt } = await startInterrupted(Buffer.from('E\0\0\0\x0cC26000\0\0'));
    const { run } = runner(url);
    await run('series', 1);
    interrupt();
    expect(await failureOf(run('series', 1))).toBeInstanceOf(ConnectionCut);
    expect(await run('series', 1)).toEqual(['1']);
  });
});

describe('a connection that is lost', () => {
  test('under statements fails them at once, and the next one has another', async () => {
    const { run, applicationName } = runner();
    await run('series', 1);
    const sleeping = [failureOf(run('sleep', 4)), failureOf(run('series', 1))];
    await expect.poll(async () => (await kill(applicationName)).length).toBe(1);
    for (const error of await Promise.all(sleeping)) {
      expect(error).toBeInstanceOf(Error);
      expect(error).not.toBeInstanceOf(StatementTimeout);
    }
    expect(await run('series', 1)).toEqual(['1']);
  });

  test('between two statements is opened anew, and nobody sees it', async () => {
    const { run, applicationName } = runner();
    await run('series', 1);
    await kill(applicationName);
    // Time for the end to come in.
    await expect
      .poll(async () => [...(await admin`select 1 from pg_stat_activity where application_name = ${applicationName}`)])
      .toEqual([]);
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(await run('series', 1)).toEqual(['1']);
  });
});

test.each(['transaction_timeout', 'statement_timeout'])(
  'a statement that is over its %s may be sent again',
  async (setting) => {
    const { run } = runner(`${server.url}?${setting}=500`);
    expect(statementFailure(await failureOf(run('sleep', 2)))).toBe('unavailable');
    expect(await run('series', 1)).toEqual(['1']);
  },
);

test('a connection that the driver takes for idle stays, whatever the URL says of those', async () => {
  const { run } = runner(`${server.url}?idle_timeout=1`);
  await run('sleep', 1.5);
  expect(await run('series', 1)).toEqual(['1']);
});

test('a statement on a connection that is over fails at once', async () => {
  const lane = openLane({ url: server.url, applicationName: 'over', connectionsMax: 1 }, (_db, connect) => connect);
  onTestFinished(() => lane.close());
  const closed = Promise.withResolvers<void>();
  const wire = new WireConnection(await lane.run((connect) => connect()), closed.resolve);
  await wire.prepare('echo', texts.echo);
  wire.destroy();
  expect(await failureOf(wire.run('echo', ['a', 'b']))).toBeInstanceOf(ConnectionCut);
  await closed.promise;
  expect(await failureOf(wire.run('echo', ['a', 'b']))).toBeInstanceOf(ConnectionCut);
});

test('a statement that the database knows no more, or whose columns have changed, is prepared anew', async () => {
  const { run } = runner();
  expect(await run('keep', 10, 'before')).toEqual(['10']);
  await admin`alter table kept alter column id type bigint`;
  expect(await failureOf(run('keep', 11, 'while'))).toBeInstanceOf(ConnectionCut);
  expect(await run('keep', 11, 'after')).toEqual(['11']);
});

test.each([
  ['names what is not there', 'select nothing from nowhere', '42P01'],
  ['asks for what there is not', 'select count(*) from kept for update', '0A000'],
])('a statement that %s is an error each time, and hangs nobody', async (_, broken, code) => {
  const lane = openLane({ url: server.url, applicationName: 'broken', connectionsMax: 1 }, (_db, connect) =>
    statementsOnWire(connect, { broken }),
  );
  onTestFinished(() => lane.close());
  for (let attempt = 0; attempt < 3; attempt += 1) {
    expect(await failureOf(lane.run((statement) => statement('broken', [])))).toMatchObject({ code });
  }
});

test('a call in the moment in which a connection ends that was not fit for use shares the next one with those after it', async () => {
  let opened = 0;
  const late: Promise<unknown>[] = [];
  const lane = openLane({ url: server.url, applicationName: 'moment', connectionsMax: 1 }, (_db, connect) => {
    const run = statementsOnWire(
      async () => {
        const socket = await connect();
        opened += 1;
        if (opened === 1) socket.once('close', () => process.nextTick(callTwice));
        return socket;
      },
      { broken: 'select nothing from nowhere' },
    );
    const callTwice = () => {
      late.push(failureOf(run('broken', [])));
      setImmediate(() => late.push(failureOf(run('broken', []))));
    };
    return run;
  });
  onTestFinished(() => lane.close());
  expect(await failureOf(lane.run((run) => run('broken', [])))).toMatchObject({ code: '42P01' });
  await expect.poll(() => late.length).toBe(2);
  expect(await Promise.all(late)).toMatchObject([{ code: '42P01' }, { code: '42P01' }]);
  expect(opened).toBe(2);
});
