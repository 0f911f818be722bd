import { readdir, readFile, stat } from 'node:fs/promises';
import { errorCatalogue } from '@order-gateway/contract/errors';
import { lateDays, liveSecretsMax } from '@order-gateway/domain/accounts';
import { amountHundredthsMax, formatAmount, orderCurrencyCodes } from '@order-gateway/domain/money';
import {
  fieldRules,
  lifetimeMs,
  orderFieldNames,
  orderStatuses,
  personalFieldNames,
  transitions,
} from '@order-gateway/domain/orders';
import { pageLimit } from '@order-gateway/domain/requests';
import { endpointsMax, redeliveredMax } from '@order-gateway/domain/webhooks';
import { pageLanguages } from '@order-gateway/pages/localization';
import { expect, test } from 'vitest';
import manifest from '../../../../package.json' with { type: 'json' };
import { callTimeoutMs, drainTimeoutMs, messageBytesMax, messageBytesMaxOfAny } from '../../src/limits.ts';

const docs = new URL('../../../../docs/', import.meta.url);

test('the proto file lists the fields of CreateOrderRequest, with the maximum length of each text field', async () => {
  const text = await readFile(new URL('../proto/gateway/v1/order_service.proto', docs), 'utf8');
  const [, message = ''] = /^message CreateOrderRequest \{\n([^}]+)\}/m.exec(text) ?? [];
  const fields = message.matchAll(/((?: +\/\/ .+\n)+) +(?:optional \w+|map<string, string>) (\w+) =/g);
  const commentsByField = new Map([...fields].map(([, comment = '', name = '']) => [name, comment]));
  expect([...commentsByField.keys()]).toEqual([...orderFieldNames, 'order_expires_at', 'metadata']);
  const { min, max } = lifetimeMs;
  expect(commentsByField.get('order_expires_at')?.replace(/\s+(\/\/ )?/g, ' ')).toContain(
    `${min / 60_000} minute to ${max / 86_400_000} days ahead`,
  );
  for (const [name, rule] of Object.entries(fieldRules)) {
    if (rule.kind !== 'text') continue;
    const lengths = commentsByField.get(name)?.match(/(?:up to|\d to) (\d[\d,]*)\b/)?.[1];
    expect([name, Number(lengths?.replace(',', ''))]).toEqual([name, rule.lengthMax]);
  }
});

test('docs/data-protection.md lists the fields that erasing an order empties', async () => {
  const page = await readFile(new URL('data-protection.md', docs), 'utf8');
  const [, table = ''] = page.split('| Field ');
  const cells = [...table.matchAll(/^\| (`\w+`(?:, `\w+`)*) +\|/gm)].map(([, cell = '']) => cell);
  const names = cells.flatMap((cell) => cell.replaceAll('`', '').split(', '));
  expect(names.slice(0, personalFieldNames.length).sort()).toEqual(personalFieldNames.toSorted());
});

test('docs/order-states.md shows exactly the transitions of the domain', async () => {
  const page = await readFile(new URL('order-states.md', docs), 'utf8');
  const drawn = [...page.matchAll(/^ +(\w+) --> (\w+):/gm)].map(([, from, to]) => `${from} --> ${to}`);
  expect(drawn.toSorted()).toEqual(
    Object.values(transitions)
      .map(({ from, to }) => `${from} --> ${to}`)
      .toSorted(),
  );
  const rows = [...page.matchAll(/^\| `(\w+)` +\|.*\| (?:`([\w.]+)`)? +\|$/gm)].map(([, status, event]) => [
    status,
    event,
  ]);
  const eventOf = new Map(Object.values(transitions).map(({ to, event }) => [to as string, event]));
  expect(rows.slice(0, orderStatuses.length)).toEqual(orderStatuses.map((status) => [status, eventOf.get(status)]));
});

test('every relative link in the docs points to an existing file and heading', async () => {
  const root = new URL('../', docs);
  const files = ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'SECURITY.md'];
  for (const name of await readdir(docs, { recursive: true })) if (name.endsWith('.md')) files.push(`docs/${name}`);
  const headings = async (file: URL) =>
    [...(await readFile(file, 'utf8')).matchAll(/^#+ (.+)$/gm)].map(([, text = '']) =>
      text
        .toLowerCase()
        .replaceAll(/[^\w\- ]/g, '')
        .replaceAll(' ', '-'),
    );
  const broken: string[] = [];
  for (const name of files) {
    const file = new URL(name, root);
    for (const [, link = ''] of (await readFile(file, 'utf8')).matchAll(/\]\((?!https?:)([^)\s]+)\)/g)) {
      const target = new URL(link, file);
      const exists = await stat(target).then(
        () => true,
        () => false,
      );
      const hasHeading = target.hash === '' || (exists && (await headings(target)).includes(target.hash.slice(1)));
      if (!exists || !hasHeading) broken.push(`${name}: ${link}`);
    }
  }
  expect(broken).toEqual([]);
});

test('the index of the decision records links each of them', async () => {
  const records = (await readdir(new URL('decisions', docs))).filter((name) => /^\d.*\.md$/.test(name));
  const index = await readFile(new URL('decisions/README.md', docs), 'utf8');
  expect([...index.matchAll(/\((\d[\w-]+\.md)\)/g)].map(([, name]) => name).toSorted()).toEqual(records.toSorted());
});

test('limits, defaults and lists that the docs state match the code', async () => {
  const files = ['creating-orders.md', 'operations.md', 'payment-page.md', 'order-states.md', 'events.md'];
  const webhookService = '../proto/gateway/v1/webhook_service.proto';
  const [orders = '', operations = '', paymentPage = '', states = '', events = '', webhooks = ''] = await Promise.all(
    [...files, webhookService].map(async (file) => (await readFile(new URL(file, docs), 'utf8')).replace(/\s+/g, ' ')),
  );
  const amountMax = Number(formatAmount(amountHundredthsMax)).toLocaleString('en');
  expect(orders).toContain(`at most ${amountMax}, `);
  expect(orders).toContain(`: ${orderCurrencyCodes.length} codes`);
  expect(states).toContain(`at most ${lateDays.byDefault * 24} hours after it`);
  expect(orders).toContain(`at most \`limit\` items: 1 to ${pageLimit.max}, ${pageLimit.byDefault} by default`);
  expect(events).toContain(`**Endpoints.** You can have up to ${endpointsMax}.`);
  expect(webhooks).toContain(`Queues up to ${redeliveredMax.toLocaleString('en')} deliveries to the endpoint`);
  expect(operations).toContain(`An account has up to ${liveSecretsMax} secrets that work`);
  expect(operations).toContain(`A call has ${callTimeoutMs / 1_000} seconds in total`);
  expect(operations).toContain(`calls in flight get ${drainTimeoutMs / 1_000} seconds to finish`);
  expect(operations).toContain(`run the gateway itself: \`${manifest.scripts.start}\``);
  const languages = new Intl.DisplayNames('en', { type: 'language' });
  const names = pageLanguages.map((language) => languages.of(language) ?? language);
  expect(paymentPage).toContain(`speaks ${new Intl.ListFormat('en-GB').format(names)}, `);
  const [brandMax, otherMax] = [messageBytesMaxOfAny, messageBytesMax].map((bytes) => `${bytes / 1_024} KiB`);
  expect(errorCatalogue.body_too_large.when).toContain(
    `${brandMax} to change a brand, ${otherMax} for everything else`,
  );
});
