import { execFile, spawnSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { copyFile, mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Webhook } from 'standardwebhooks';
import { beforeAll, describe, expect, test } from 'vitest';
import { supportedNodes } from '../../../../tools/installed-nodes.ts';
import { missing, mustSkip } from '../../../../tools/skip-if-missing.ts';
import { waitLimitMs } from '../../../../tools/test-limits.ts';
import { compile, generatePython, generateTypes } from '../helpers/generated-code.ts';
import { missingGrpcio, python } from '../helpers/grpc/grpcio.ts';
import { useGateway } from '../helpers/running-gateway.ts';
import { callJson, createOrder, postJson } from '../helpers/send-order.ts';

const examplesFolder = join(import.meta.dirname, '../../../../docs/examples');

/** The folder of the copied examples, from which they can import their packages. */
const projectFolder = join(import.meta.dirname, '../../node_modules/.cache/examples');

/** The command that runs Node.js with the client package resolved to its source. */
const node = [process.execPath, '--conditions=@order-gateway/source'] as const;

const [oldestNode] = supportedNodes().values();

interface Language {
  /** The command that runs an example, without the path of the example. */
  readonly runs: readonly [string, ...string[]];
  /** Why the examples can't run on this machine. */
  readonly reason?: string | undefined;
  /** The example that creates an order. */
  readonly creates: string;
  /** The example that takes the payment of an order. */
  readonly pays?: string;
  /** The example that verifies a webhook or a return. */
  readonly verifies?: string;
  /** Generates the code that the example imports. */
  readonly prepare?: () => Promise<void>;
}

/** Runs a command. Returns a description of its failure, or `undefined` if it succeeds. */
function failing(command: string, ...args: string[]): string | undefined {
  const { status } = spawnSync(command, args, { stdio: 'ignore', timeout: waitLimitMs });
  return status === 0 ? undefined : `\`${[command, ...args].join(' ')}\` fails`;
}

const languages: Readonly<Record<string, Language>> = {
  curl: {
    runs: ['sh'],
    reason: missing('curl') ?? missing('openssl') ?? missing('sed'),
    creates: 'create-order.sh',
    pays: 'checkout.sh',
    verifies: 'verify-signatures.sh',
  },
  'Node.js': { runs: node, creates: 'create-order.mjs', verifies: 'verify-signatures.mjs' },
  Connect: { runs: node, creates: 'connect-client.mjs', pays: 'checkout-connect.mjs' },
  'grpc-js': { runs: node, creates: 'grpc-client.mjs', pays: 'checkout-grpc.mjs' },
  TypeScript: {
    // Node.js 20 does not run TypeScript, and newer versions do not run it under node_modules.
    runs: ['sh', '-c', `exec ${oldestNode} "$(dirname "$0")/typed-fetch.mjs"`],
    creates: 'typed-fetch.mts',
    prepare: async () => {
      await generateTypes(gateway.url, projectFolder);
      await copyFile(join(examplesFolder, 'typed-fetch.mts'), join(projectFolder, 'typed-fetch.mts'));
      await compile(projectFolder, 'typed-fetch.mts');
    },
  },
  grpcio: {
    runs: [python],
    reason:
      // Debian's compiler does not depend on the package that contains the imported files of `google/protobuf`.
      failing('protoc', '-o', '/dev/null', 'google/protobuf/descriptor.proto') ??
      missing('grpc_python_plugin') ??
      missing('curl') ??
      missing('tar') ??
      missingGrpcio(),
    creates: 'grpc_client.py',
    prepare: () => generatePython(gateway.url, projectFolder),
  },
  Python: {
    runs: ['python3'],
    reason: failing('python3', '-V'),
    creates: 'create_order.py',
    verifies: 'verify_signatures.py',
  },
  PHP: {
    // The digits of floats that old installations of PHP write.
    runs: ['php', '-d', 'serialize_precision=17'],
    reason: failing('php', '-r', 'curl_version();'),
    creates: 'create-order.php',
    verifies: 'verify-signatures.php',
  },
};

const runnable = Object.entries(languages).filter(([name, { reason }]) => {
  const isSkipped = mustSkip(`the examples in ${name}`, reason);
  if (isSkipped) test.skip(`the example in ${name}`);
  return !isSkipped;
});

const gateway = useGateway();
beforeAll(async () => {
  await mkdir(projectFolder, { recursive: true });
});

/** Runs an example and returns its standard output. Rejects if it fails. */
async function run(
  { runs: [command, ...options] }: Language,
  file: string,
  variables: Readonly<Record<string, string>>,
  input = '',
): Promise<string> {
  const copy = join(projectFolder, file);
  await copyFile(join(examplesFolder, file), copy);
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const running = promisify(execFile)(command, [...options, copy], {
    env: { PATH, NODE_COMPILE_CACHE, ...variables },
    timeout: waitLimitMs,
  });
  // A program that does not read its input may end before the input is written.
  running.child.stdin?.on('error', () => {}).end(input);
  return (await running).stdout;
}

function addresses(): Readonly<Record<string, string>> {
  return {
    BASE_URL: gateway.url,
    GRPC_ADDRESS: `127.0.0.1:${gateway.grpcPort}`,
    PYTHONPATH: join(projectFolder, 'gen'),
    PROTO_FOLDER: join(import.meta.dirname, '../../../../proto'),
  };
}

/** Runs an example that creates an order. Returns its standard output. */
function create(language: Language, variables: Readonly<Record<string, string>>): Promise<string> {
  return run(language, language.creates, {
    ...addresses(),
    CLIENT_ID: gateway.credentials.clientId,
    CLIENT_SECRET: gateway.credentials.clientSecret,
    ...variables,
  });
}

/** Returns the output of a program that must fail, or a text that says that it succeeded. */
function outputOfFailure(running: Promise<unknown>): Promise<string> {
  return running.then(
    () => 'the program succeeded',
    ({ stdout, stderr }: { stdout: string; stderr: string }) => stdout + stderr,
  );
}

describe.each(runnable)('the example in %s', (name, language) => {
  beforeAll(() => language.prepare?.());

  test('creates an order and looks it up', async () => {
    const orderId = `example-${name}`;
    const printed = JSON.parse((await create(language, { ORDER_ID: orderId })).trim().split('\n').at(-1) ?? '');
    const order = (await callJson(gateway, 'GET', `/order/${orderId}`)).body;
    // In Protobuf's JSON, 64-bit integers are strings.
    expect({ ...printed, service_order_id: Number(printed.service_order_id) }).toEqual(order);
  });

  test('fails with the error code if the credentials are wrong', async () => {
    const failure = create(language, { ORDER_ID: 'rejected', CLIENT_SECRET: `sk_${'0'.repeat(43)}` });
    expect(await outputOfFailure(failure)).toMatch(/unauthenticated/i);
  });
});

describe.each(runnable.filter(([, { pays }]) => pays !== undefined))(
  'the example in %s that takes a payment',
  (name, language) => {
    const pay = (orderToken: string, paymentId: string, variables: Readonly<Record<string, string>> = {}) =>
      run(language, language.pays ?? '', {
        ...addresses(),
        CLIENT_ID: gateway.checkout.credentials.clientId,
        CLIENT_SECRET: gateway.checkout.credentials.clientSecret,
        ORDER_TOKEN: orderToken,
        PAYMENT_ID: paymentId,
        ...variables,
      });

    test('says to refund a payment with the wrong amount, then pays the order, and takes no further payment', async () => {
      const orderId = `pays-${name}`;
      const { order_token } = await createOrder(gateway, orderId);
      const refused = pay(order_token, `${orderId}-1`, { PAID_AMOUNT: '9.5' });
      expect(await outputOfFailure(refused)).toBe('Refund the payment: payment_mismatch\n');
      expect(await pay(order_token, `${orderId}-2`)).toMatch(
        /^Paid\. The customer returns to https:\/\/shop\.example\.com/,
      );
      const record = (await callJson(gateway, 'GET', `/order/${orderId}`)).body;
      expect(record).toMatchObject({ order_status: 'PAID', payment_id: `${orderId}-2`, order_amount: 1249.5 });
      expect(record.refused_payments).toMatchObject([{ payment_id: `${orderId}-1`, amount: 9.5 }]);
      const late = pay(order_token, `${orderId}-3`);
      expect(await outputOfFailure(late)).toBe("The order can't be paid: order_already_paid\n");
    });

    test('takes no money while another attempt is in progress', async () => {
      const { order_token } = await createOrder(gateway, `claimed-${name}`);
      const attempt = { order_token, attempt_id: 'another' };
      await postJson(gateway.checkout, '/gateway.v1.CheckoutService/StartPayment', attempt);
      expect(await outputOfFailure(pay(order_token, `claimed-${name}`))).toMatch(/^Another payment .* is in progress/);
    });
  },
);

const signingKey = Buffer.alloc(32, 7);
const signingSecret = `whsec_${signingKey.toString('base64')}`;
const otherSecret = `whsec_${Buffer.alloc(32, 8).toString('base64')}`;

/** Returns the headers of a webhook, signed by the reference library of Standard Webhooks, as environment variables. */
function signedWebhook(body: string, ageSeconds = 0, secrets = [signingSecret]): Record<string, string> {
  const signedAt = new Date(Date.now() - ageSeconds * 1_000);
  return {
    SIGNING_SECRET: signingSecret,
    WEBHOOK_ID: 'evt_1',
    WEBHOOK_TIMESTAMP: String(Math.floor(signedAt.getTime() / 1_000)),
    WEBHOOK_SIGNATURE: secrets.map((secret) => new Webhook(secret).sign('evt_1', signedAt, body)).join(' '),
  };
}

/** Returns a signed return as environment variables: the URL, and its query parameters for the shell example. */
function signedReturn(change: { status?: string; ageSeconds?: number; secret?: string } = {}): Record<string, string> {
  const signedAt = String(Math.floor(Date.now() / 1_000) - (change.ageSeconds ?? 0));
  const text = `a\\|b\\\\é|42|UN_PAID|${signedAt}`;
  const values = {
    order_id: 'a|b\\é',
    service_order_id: '42',
    order_status: change.status ?? 'UN_PAID',
    signed_at: signedAt,
    signature: `v1=${createHmac('sha256', signingKey).update(text).digest('hex')}`,
  };
  return {
    ...Object.fromEntries(Object.entries(values).map(([name, value]) => [name.toUpperCase(), value])),
    SIGNING_SECRET: change.secret ?? signingSecret,
    RETURN_URL: `https://shop.example.com/thanks?cart=7&${new URLSearchParams(values)}#top`,
  };
}

describe.each(runnable.filter(([, { verifies }]) => verifies !== undefined))(
  'the example in %s that verifies signatures',
  (_name, language) => {
    const file = language.verifies ?? '';
    const body = JSON.stringify({ id: 'evt_1', type: 'order.paid', data: { order_note: 'café 💶' } });

    test.each([
      ['one signature', [signingSecret]],
      ['two signatures', [otherSecret, signingSecret]],
    ])('accepts a webhook with %s', async (_, secrets) => {
      expect(await run(language, file, signedWebhook(body, 0, secrets), body)).toMatch(/evt_1.*order\.paid/);
    });

    test.each([
      ['a different secret', body, () => signedWebhook(body, 0, [otherSecret])],
      ['a changed body', `${body} `, () => signedWebhook(body)],
      ['a changed id', body, () => ({ ...signedWebhook(body), WEBHOOK_ID: 'evt_2' })],
      ['an old time', body, () => signedWebhook(body, 310)],
      ['a time that is not a number', body, () => ({ ...signedWebhook(body), WEBHOOK_TIMESTAMP: '1x' })],
    ])('rejects a webhook with %s', async (_, content, variables) => {
      expect(await outputOfFailure(run(language, file, variables(), content))).toContain('not verified');
    });

    test('accepts a signed return', async () => {
      expect(await run(language, file, signedReturn())).toBe('a|b\\é UN_PAID\n');
    });

    test.each([
      ['a different secret', { secret: otherSecret }],
      ['a changed status', { status: 'PAID' }],
      ['an old time', { ageSeconds: 3_610 }],
    ])('rejects a return with %s', async (_, change) => {
      expect(await outputOfFailure(run(language, file, signedReturn(change)))).toContain('not verified');
    });
  },
);

test('these tests list every example', async () => {
  const files = (await readdir(examplesFolder)).filter((file) => !file.endsWith('.md'));
  const run = Object.values(languages).flatMap(({ creates, pays, verifies }) =>
    [creates, pays ?? [], verifies ?? []].flat(),
  );
  expect(files.sort()).toEqual(run.sort());
});
