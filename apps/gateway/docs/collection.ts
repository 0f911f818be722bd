import { failures } from '@gateway/domain/failure';
import { type FilledCall, fillCall } from '@gateway/fixtures/fill-call';
import type { Fixture, FixtureCall } from '@gateway/fixtures/fixture';
import { loadFixtures } from '@gateway/fixtures/load-fixtures';

// Postman's Collection 2.1, which Bruno, Insomnia and Hoppscotch import too.
const schema = 'https://schema.getpostman.com/json/collection/v2.1.0/collection.json';

/** Fixtures with larger bodies or more calls are not for people to send by hand. */
const bodyBytesMax = 4_096;
const callsMax = 3;

const description =
  'Begins with the example of the interface. The other requests are the fixtures that can be sent by hand. Set base_url, ' +
  'client_id and client_secret. The order_ids begin with run: change it to start again with new orders.';

/** The text of docs/postman-collection.json, made from the fixtures. */
export async function collection(): Promise<string> {
  const { fixtures, validOrder } = await loadFixtures();
  const forPeople = fixtures.filter(isForPeople);
  const itemsOfAll = (some: readonly Fixture[]) => some.flatMap((fixture) => itemsOf(fixture, validOrder));
  const { interface: ofInterface = [], ...others } = Object.groupBy(
    forPeople,
    ({ file }) => file.split('-', 1)[0] ?? '',
  );
  const made = {
    info: { name: 'Order gateway', description, schema },
    variable: Object.entries({
      base_url: 'http://localhost:8080',
      client_id: '<APP_ID>',
      client_secret: '<SECRET_KEY>',
      run: 'run-1',
    }).map(([key, value]) => ({ key, value })),
    item: [
      { name: 'interface', item: [...itemsOfAll(ofInterface), lookUpItem()] },
      ...Object.entries(others).map(([name, some = []]) => ({ name, item: itemsOfAll(some) })),
    ],
  };
  return `${JSON.stringify(made, null, 1)}\n`;
}

/** Whether every call is a JSON request of the one merchant, as text without computed values. */
function isForPeople({ calls }: Fixture): boolean {
  if (calls.length > callsMax) return false;
  return calls.every((call) => {
    const text = JSON.stringify([call.order, call.text, call.headers, call.path]);
    const computed = /\{\{(?!order_id\}\}|members\}\}|client_id\}\}|client_secret\}\})/.test(text);
    const sent = call.protocols.includes('json') && (call.via ?? 'json') === 'json';
    return (
      sent && call.merchant === 'first' && !computed && call.pad_to_bytes === undefined && call.latin1 === undefined
    );
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
    const number = filled.length === 1 ? '' : ` (${index + 1} of ${filled.length})`;
    return itemOf(`${fixture.name}${number}`, call, rest);
  });
}

function itemOf(name: string, { path, method }: FixtureCall, { outgoing, expect }: FilledCall) {
  const { bytes, headers } = outgoing;
  const isError = Object.hasOwn(failures, expect.outcome);
  return {
    name,
    request: {
      method,
      url: `{{base_url}}${path ?? '/order'}`,
      header: Object.entries(headers).map(([key, value]) => ({ key, value })),
      ...(bytes === undefined ? {} : { body: { mode: 'raw', raw: Buffer.from(bytes).toString() } }),
    },
    event: check(expect.outcome, [
      `pm.response.to.have.status(${expect.json?.status ?? 0});`,
      ...(isError ? [`pm.expect(pm.response.json().code).to.eql('${expect.outcome}');`] : []),
    ]),
  };
}

function lookUpItem() {
  const header = [
    { key: 'x-client-id', value: '{{client_id}}' },
    { key: 'x-client-secret', value: '{{client_secret}}' },
  ];
  const url = '{{base_url}}/order/{{run}}-interface-example-in-full';
  return {
    name: 'the order of the interface’s example can be looked up',
    request: { method: 'GET', url, header },
    event: check('ok', ['pm.response.to.have.status(200);']),
  };
}

/** Postman's form of a test with some statements. */
function check(name: string, statements: readonly string[]) {
  const exec = [`pm.test('${name}', () => {`, ...statements.map((statement) => `  ${statement}`), '});'];
  return [{ listen: 'test', script: { type: 'text/javascript', exec } }];
}
