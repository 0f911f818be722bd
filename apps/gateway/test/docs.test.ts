import { readFile } from 'node:fs/promises';
import { liveSecretsMax } from '@gateway/domain/credentials';
import { orderCurrencyCodes } from '@gateway/domain/currency';
import { failures } from '@gateway/domain/failure';
import { fieldRules } from '@gateway/domain/field-rules';
import { amountHundredthsMax, formatAmount } from '@gateway/domain/money';
import { orderFieldNames } from '@gateway/domain/order-fields';
import { parseBaseUrl } from '@gateway/domain/payment-link';
import { afterAll, beforeAll, expect, test } from 'vitest';
import manifest from '../../../package.json' with { type: 'json' };
import { collection } from '../docs/collection.ts';
import { errorsPage } from '../docs/errors-page.ts';
import { demoBanner } from '../src/cli/demo-merchant.ts';
import { callTimeoutMs, drainTimeoutMs, messageBytesMax } from '../src/limits.ts';
import { pageLanguages } from '../src/pages/localization.ts';
import { type RunningGateway, runGateway } from './running-gateway.ts';

const docs = new URL('../../../docs/', import.meta.url);

let gateway: RunningGateway;
beforeAll(async () => {
  gateway = await runGateway();
});
afterAll(() => gateway?.close());

// If one of these fails: `pnpm --filter gateway run docs`.
test('docs/errors.md is up to date with the list of failures', async () => {
  expect(await readFile(new URL('errors.md', docs), 'utf8')).toBe(errorsPage());
});

test('docs/postman-collection.json is up to date with the fixtures', async () => {
  expect(await readFile(new URL('postman-collection.json', docs), 'utf8')).toBe(await collection());
});

test('docs/creating-orders.md lists every field once, with the length of its rule', async () => {
  const page = await readFile(new URL('creating-orders.md', docs), 'utf8');
  const section = page.split(/^## /m).find((text) => text.startsWith('Fields\n')) ?? '';
  const listed = new Map<string, string>();
  for (const [, names = '', rule = ''] of section.matchAll(/^\| (`\w+`(?:, `\w+`)*) +\| (.+?) +\|$/gm)) {
    const [first = '', ...others] = names.replaceAll('`', '').split(', ');
    // The first name is complete, the others may be only its last word: `_state`.
    for (const name of [first, ...others.map((end) => first.replace(/_[a-z]+$/, end))]) listed.set(name, rule);
  }
  expectLengths(listed);
});

test('the contract lists every field once, with the length of its rule', async () => {
  const text = await readFile(new URL('../proto/gateway/v1/order_service.proto', docs), 'utf8');
  const fields = text.matchAll(/((?: +\/\/ .+\n)+) +optional \w+ (\w+) =/g);
  expectLengths(new Map([...fields].map(([, comment = '', name = '']) => [name, comment])));
});

function expectLengths(listed: ReadonlyMap<string, string>): void {
  expect([...listed.keys()]).toEqual([...orderFieldNames]);
  for (const [name, rule] of Object.entries(fieldRules)) {
    if (rule.kind !== 'text') continue;
    const lengths = listed.get(name)?.match(/(?:up to|\d to) (\d[\d,]*)\b/)?.[1];
    expect([name, Number(lengths?.replace(',', ''))]).toEqual([name, rule.lengthMax]);
  }
}

test('the README shows the request that a first start prints', async () => {
  const readme = await readFile(new URL('../README.md', docs), 'utf8');
  const baseUrl = parseBaseUrl('http://localhost:8080');
  if (baseUrl === undefined) throw new Error('no base URL');
  const banner = demoBanner(
    { clientId: '<APP_ID>', clientSecret: '<SECRET_KEY>', signingSecret: '' },
    baseUrl,
    undefined,
  );
  const request = /^curl .+/ms.exec(banner)?.[0] ?? 'no request';
  expect(readme).toContain(request.trimEnd());
});

test('the numbers and lists in the sentences of the docs are correct', async () => {
  const [orders = '', operations = '', paymentPage = ''] = await Promise.all(
    ['creating-orders.md', 'operations.md', 'payment-page.md'].map(async (file) =>
      (await readFile(new URL(file, docs), 'utf8')).replace(/\s+/g, ' '),
    ),
  );
  const amountMax = Number(formatAmount(amountHundredthsMax)).toLocaleString('en');
  expect(orders).toContain(`at most ${amountMax}, `);
  expect(orders).toContain(`: ${orderCurrencyCodes.length} codes`);
  expect(operations).toContain(`a client has up to ${liveSecretsMax} that work`);
  expect(operations).toContain(`A call has ${callTimeoutMs / 1_000} seconds in all`);
  expect(operations).toContain(`calls in flight get ${drainTimeoutMs / 1_000} seconds to finish`);
  expect(operations).toContain(`run the gateway itself: \`${manifest.scripts.start}\``);
  const languages = new Intl.DisplayNames('en', { type: 'language' });
  const names = pageLanguages.map((language) => languages.of(language) ?? language);
  expect(paymentPage).toContain(`speaks ${new Intl.ListFormat('en-GB').format(names)}, `);
  expect(failures.body_too_large.when).toContain(`larger than ${messageBytesMax / 1_024} KiB`);
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

test('every request of the collection passes its check, the example of the interface first', async () => {
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
  expect(items[0]?.name).toBe('an order with every field of the interface is answered with its six fields');
  for (const { name, request, event } of items) {
    if (request === undefined) throw new Error(`${name} has no request`);
    const response = await fetch(fill(request.url), {
      method: request.method,
      headers: Object.fromEntries(request.header.map(({ key, value }) => [key, fill(value)])),
      ...(request.body === undefined ? {} : { body: Buffer.from(fill(request.body.raw)) }),
    });
    const check = event?.[0]?.script.exec.join('\n');
    expect(check, name).toContain(`status(${response.status})`);
    const { code } = Object(await response.json().catch(() => ({})));
    if (code !== undefined) expect(check, name).toContain(`'${code}'`);
  }
}, 60_000);
