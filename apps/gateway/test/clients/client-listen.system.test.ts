import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Webhook } from 'standardwebhooks';
import { expect, onTestFinished, test } from 'vitest';
import { useGateway } from '../helpers/running-gateway.ts';
import { callJson, cancelNewOrder } from '../helpers/send-order.ts';
import { runWebhookReceiver } from '../helpers/webhook-receiver.ts';

const gateway = useGateway();

const program = join(import.meta.dirname, '../../../../packages/client/src/cli.ts');

/** Starts `order-gateway-client listen`, and ends it with the test. `lines` contains its output so far. */
function startListen(args: readonly string[], variables: Record<string, string> = {}) {
  const { clientId: CLIENT_ID, clientSecret: CLIENT_SECRET } = gateway.credentials;
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const env = { PATH, NODE_COMPILE_CACHE, BASE_URL: gateway.url, CLIENT_ID, CLIENT_SECRET, ...variables };
  const child: ChildProcess = spawn(process.execPath, [program, 'listen', ...args], { env, stdio: 'pipe' });
  onTestFinished(() => void child.kill());
  const lines: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    if (stream !== null) createInterface(stream).on('line', (line) => lines.push(line));
  }
  return { lines, exited: once(child, 'close').then(([code]) => code as number) };
}

test('listen forwards new events as signed webhooks, and can replay an earlier event', async () => {
  await cancelNewOrder(gateway, 'past');
  const { body: past } = await callJson(gateway, 'GET', '/events?order_id=past');
  const [{ id }] = past.events;
  const { url, received } = await runWebhookReceiver({
    respond: (_, response) => void response.writeHead(202).end('body'),
  });

  const { lines } = startListen(['--forward-to', url, '--types', 'order.paid,order.cancelled']);
  await expect.poll(() => lines).toContain('Ready. Waiting for events.');
  await cancelNewOrder(gateway, 'new');
  await expect.poll(() => lines.at(-1)).toMatch(/^evt_[0-9a-f]{32} order\.cancelled 202$/);
  expect(received).toHaveLength(1);
  const [webhook] = received;
  const secret = lines[0]?.replace('Signing secret: ', '') ?? '';
  const verified = new Webhook(secret).verify(webhook?.body ?? '', webhook?.headers as Record<string, string>);
  expect(verified).toMatchObject({ type: 'order.cancelled', data: { order_id: 'new' } });

  const replay = startListen(['--forward-to', url, '--replay', id], { SIGNING_SECRET: secret });
  expect(await replay.exited).toBe(0);
  expect(replay.lines).toEqual([`${id} order.cancelled 202`]);
  expect(JSON.parse(received[1]?.body ?? '')).toMatchObject({ id, data: { order_id: 'past' } });
});

test('listen prints why an event could not be delivered', async () => {
  const { lines } = startListen(['--forward-to', 'http://127.0.0.1:1/hook']);
  await expect.poll(() => lines).toContain('Ready. Waiting for events.');
  await cancelNewOrder(gateway, 'refused');
  await expect.poll(() => lines.at(-1)).toMatch(/order\.cancelled no response \(.+\)$/);
});

test.each<[string[], number, RegExp, Record<string, string>?]>([
  [[], 2, /--forward-to must be/],
  [['--forward-to', 'http://127.0.0.1:1', '--unknown'], 2, /--unknown/],
  [['--forward-to', 'http://127.0.0.1:1'], 2, /signing secret must be whsec_/, { SIGNING_SECRET: 'sk_x' }],
  [['--help'], 0, /^Usage: order-gateway-client listen/],
  [['--forward-to', 'http://127.0.0.1:1', '--types', 'order.created'], 1, /invalid_request: type must be/],
  [['--forward-to', 'http://127.0.0.1:1', '--replay', 'evt_1'], 1, /has no event evt_1/],
])('listen with the arguments %j exits with %i and prints the reason', async (args, code, reason, variables) => {
  const { lines, exited } = startListen(args, variables);
  expect(await exited).toBe(code);
  expect(lines.join('\n')).toMatch(reason);
  expect(lines.join('\n')).not.toContain(gateway.credentials.clientSecret);
});
