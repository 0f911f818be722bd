import { glob, readFile } from 'node:fs/promises';
import { unpackTar } from 'modern-tar';
import { describe, expect, test } from 'vitest';
import { exampleOrder } from '../../src/pages/reference/example-order.ts';
import { runGateway, useGateway } from '../helpers/running-gateway.ts';
import { postOrder, readOrder } from '../helpers/send-order.ts';

const gateway = useGateway({
  baseUrl: 'https://pay.gateway.test/gateway',
  securityContact: 'mailto:security@example.com',
});

describe('the files at the root of the host', () => {
  const root = () => `http://127.0.0.1:${gateway.httpPort}`;

  test('GET /favicon.ico: 200 with an icon', async () => {
    const response = await fetch(`${root()}/favicon.ico`);
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'image/x-icon']);
    // The header of an ICO file with one image.
    expect(Buffer.from(await response.arrayBuffer()).subarray(0, 6)).toEqual(Buffer.of(0, 0, 1, 0, 1, 0));
  });

  test('GET /robots.txt: 200, and crawlers may read every page', async () => {
    const response = await fetch(`${root()}/robots.txt`);
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/plain; charset=utf-8']);
    expect(await response.text()).toBe('User-agent: *\nDisallow:\n');
  });

  test('GET /.well-known/security.txt: 200 with the contact and an expiry within a year (RFC 9116)', async () => {
    const response = await fetch(`${root()}/.well-known/security.txt`);
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/plain; charset=utf-8']);
    const text = await response.text();
    expect(text).toMatch(/^Contact: mailto:security@example\.com$/m);
    const expires = Date.parse(/^Expires: (\S+)$/m.exec(text)?.[1] ?? '');
    expect(expires).toBeGreaterThan(Date.now());
    expect(expires).toBeLessThan(Date.now() + 365 * 86_400_000);
  });

  test('GET /.well-known/security.txt without SECURITY_CONTACT: 404', async () => {
    const other = await runGateway();
    expect((await fetch(`${other.url}/.well-known/security.txt`)).status).toBe(404);
  });
});

test('GET /docs/proto.tar: 200 with every file of the contract at its path', async () => {
  const response = await fetch(`${gateway.url}/docs/proto.tar`);
  expect(response.headers.get('content-type')).toBe('application/x-tar');
  const entries = await unpackTar(await response.bytes());
  const files = new Map(
    entries.flatMap(({ header, data }) => (data ? [[header.name, Buffer.from(data).toString()]] : [])),
  );
  const root = new URL('../../../../', import.meta.url);
  const names = await Array.fromAsync(glob('proto/**/*.*', { cwd: root }));
  expect([...files.keys()].sort()).toEqual(names.sort());
  for (const [name, text] of files) expect(text).toBe(await readFile(new URL(name, root), 'utf8'));
});

describe('compression', () => {
  const size = async (path: string, encoding: string) => {
    const response = await fetch(`${gateway.url}${path}`, {
      headers: { ...gateway.headers, 'accept-encoding': encoding },
    });
    const { headers } = response;
    const bytes = (await response.arrayBuffer()).byteLength;
    return { encoding: headers.get('content-encoding'), vary: headers.get('vary'), bytes };
  };

  test.each(['/openapi.json', '/docs/creating-orders', '/docs/reference.js', '/docs/proto.tar'])(
    'GET %s is compressed if the client accepts it',
    async (path) => {
      for (const accepted of ['gzip', 'gzip, deflate, br', '*'])
        expect(await size(path, accepted)).toMatchObject({ encoding: 'gzip', vary: 'Accept-Encoding' });
      for (const notAccepted of ['identity', 'gzip;q=0', 'br'])
        expect(await size(path, notAccepted)).toMatchObject({ encoding: null, vary: 'Accept-Encoding' });
    },
  );

  test('responses that contain an order token are not compressed', async () => {
    const order = await readOrder(
      await postOrder(gateway, { ...exampleOrder, order_id: 'compressed', order_note: 'x'.repeat(1_000) }),
    );
    for (const path of [`/payment/${order.order_token}`, '/order/compressed', '/orders', '/events'])
      expect([path, (await size(path, 'gzip')).encoding]).toEqual([path, null]);
  });
});
