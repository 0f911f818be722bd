import { failures } from '@gateway/domain/failure';
import { type FilledCall, fillCall } from '@gateway/fixtures/fill-call';
import type { Fixture, FixtureCall } from '@gateway/fixtures/fixture';
import { loadFixtures } from '@gateway/fixtures/load-fixtures';

// The format is Postman's Collection 2.1, which Bruno, Insomnia and Hoppscotch import too.
const schema = 'https://schema.getpostman.com/json/collection/v2.1.0/collection.json';

/** A body larger than this is not for people to read, and a promise with more calls than this not for them to make. */
const bodyBytesMax = 4_096;
const callsMax = 3;

const description =
  'Every promise of POST /order that can be made by hand, out of the fixtures. Set base_url, client_id and client_secret. ' +
  'Orders are named after run: set it to another text to begin again with new orders.';

/** docs/postman-collection.json, made from the fixtures. */
export async function collection(): Promise<string> {
  const { fixtures, validOrder } = await loadFixtures();
  const folders = Map.groupBy(fixtures.filter(isForPeople), ({ file }) => file.split('-', 1)[0] ?? '');
  const made = {
    info: { name: 'Order gateway', description, schema },
    variable: Object.entries({
      base_url: 'http://localhost:8080',
      client_id: '<APP_ID>',
      client_secret: '<SECRET_KEY>',
      run: 'run-1',
    }).map(([key, value]) => ({ key, value })),
    item: [
      ...[...folders].map(([name, ofFolder]) => ({
        name,
        item: ofFolder.flatMap((fixture) => itemsOf(fixture, validOrder)),
      })),
      lookUpItem(),
    ],
  };
  return `${JSON.stringify(made, null, 1)}\n`;
}

/** Whether every call goes through the JSON door with the one merchant, in text without anything to be computed. */
function isForPeople({ calls }: Fixture): boolean {
  if (calls.length > callsMax) return false;
  return calls.every((call) => {
    const text = JSON.stringify([call.content, call.headers, call.path]);
    const computed = /\{\{(?!order_id\}\}|members\}\}|client_id\}\}|client_secret\}\})/.test(text);
    const { content } = call;
    const padded = content.kind === 'order' && content.padToBytes !== undefined;
    const sent = call.protocols.includes('json') && (call.via ?? 'json') === 'json';
    return sent && call.merchant === 'first' && !computed && !padded && content.kind !== 'latin1';
  });
}

function itemsOf(fixture: Fixture, validOrder: Readonly<Record<string, unknown>>) {
  const merchants = { first: { clientId: '{{client_id}}', clientSecret: '{{client_secret}}' } };
  const filled = fixture.calls.map((call) => ({
    call,
    ...fillCall(call, { merchants, orderId: `{{run}}-${fixture.file}`, validOrder }),
  }));
  if (filled.some(({ outgoing }) => (outgoing.bytes?.length ?? 0) > bodyBytesMax)) return [];
  return filled.map(({ call, ...rest }, index) => {
    const place = filled.length === 1 ? '' : ` (${index + 1} of ${filled.length})`;
    return itemOf(`${fixture.name}${place}`, call, rest);
  });
}

function itemOf(name: string, { path, method }: FixtureCall, { outgoing, expect }: FilledCall) {
  const { bytes, headers } = outgoing;
  const status = expect.json?.status ?? 0;
  const code = Object.hasOwn(failures, expect.outcome)
    ? [`pm.expect(pm.response.json().code).to.eql('${expect.outcome}');`]
    : [];
  return {
    name,
    request: {
      method,
      url: `{{base_url}}${path ?? '/order'}`,
      header: Object.entries(headers).map(([key, value]) => ({ key, value })),
      ...(bytes === undefined ? {} : { body: { mode: 'raw', raw: Buffer.from(bytes).toString() } }),
    },
    event: [
      {
        listen: 'test',
        script: {
          type: 'text/javascript',
          exec: [
            `pm.test('${expect.outcome}', () => {`,
            `  pm.response.to.have.status(${status});`,
            ...code.map((line) => `  ${line}`),
            '});',
          ],
        },
      },
    ],
  };
}

function lookUpItem() {
  const header = [
    { key: 'x-client-id', value: '{{client_id}}' },
    { key: 'x-client-secret', value: '{{client_secret}}' },
  ];
  const url = '{{base_url}}/order/{{run}}-interface-example-in-full';
  return { name: 'look the order of the interface’s example up', request: { method: 'GET', url, header } };
}
