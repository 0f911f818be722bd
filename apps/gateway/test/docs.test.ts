import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { collection } from '../docs/collection.ts';
import { errorsPage } from '../docs/errors-page.ts';
import { type RunningGateway, runGateway } from './running-gateway.ts';

const docs = new URL('../../../docs/', import.meta.url);

let gateway: RunningGateway;
beforeAll(async () => {
  gateway = await runGateway();
});
afterAll(() => gateway?.close());

// Where one of these fails: `pnpm --filter gateway run docs`.
test('docs/errors.md is what the list of failures makes it', async () => {
  expect(await readFile(new URL('errors.md', docs), 'utf8')).toBe(errorsPage());
});

test('docs/postman-collection.json is what the fixtures make it', async () => {
  expect(await readFile(new URL('postman-collection.json', docs), 'utf8')).toBe(await collection());
});

interface Item {
  readonly name: string;
  readonly item?: readonly Item[];
  readonly request?: {
    readonly method: string;
    readonly url: string;
    readonly header: readonly { readonly key: string; readonly value: string }[];
    readonly body?: { readonly raw: string };
  };
  readonly event?: readonly { readonly script: { readonly exec: readonly string[] } }[];
}

test('every request of the collection is answered as its check says', async () => {
  const { item } = JSON.parse(await readFile(new URL('postman-collection.json', docs), 'utf8')) as Item;
  const values: Record<string, string> = {
    base_url: gateway.url,
    client_id: gateway.credentials.clientId,
    client_secret: gateway.credentials.clientSecret,
    run: 'collection',
  };
  const fill = (text: string) => text.replaceAll(/\{\{(\w+)\}\}/g, (whole, name: string) => values[name] ?? whole);
  const items = (item ?? []).flatMap((folder) => folder.item ?? [folder]);
  expect(items.length).toBeGreaterThan(100);
  for (const { name, request, event } of items) {
    if (request === undefined) throw new Error(`${name} has no request`);
    const response = await fetch(fill(request.url), {
      method: request.method,
      headers: Object.fromEntries(request.header.map(({ key, value }) => [key, fill(value)])),
      ...(request.body === undefined ? {} : { body: Buffer.from(fill(request.body.raw)) }),
    });
    const check = event?.[0]?.script.exec.join('\n') ?? 'status(200)';
    expect(check, name).toContain(`status(${response.status})`);
    const { code } = Object(await response.json().catch(() => ({})));
    if (code !== undefined) expect(check, name).toContain(`'${code}'`);
  }
}, 60_000);
