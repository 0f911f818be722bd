import { failures } from '@gateway/domain/failure';
import { jsonCall } from '@gateway/fixtures/encodings';
import { type FilledCall, fillCall } from '@gateway/fixtures/fill-call';
import type { Fixture } from '@gateway/fixtures/fixture';
import { loadFixtures } from '@gateway/fixtures/load-fixtures';
import { carrierOf, operations } from '@gateway/fixtures/operations';

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
  const { interface: ofInterface = [], ...others } = Object.groupBy(forPeople, ({ folder, file }) =>
    folder === operations.CreateOrder.folder ? (file.split('-', 1)[0] ?? '') : folder,
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
      { name: 'interface', item: itemsOfAll(ofInterface) },
      ...Object.entries(others).map(([name, some = []]) => ({ name, item: itemsOfAll(some) })),
    ],
  };
  return `${JSON.stringify(made, null, 1)}\n`;
}

/** Whether every call is a JSON request of the one merchant, as text without computed values. */
function isForPeople({ calls }: Fixture): boolean {
  if (calls.length > callsMax) return false;
  return calls.every((call) => {
    const text = JSON.stringify([call.request, call.text, call.headers, call.path]);
    const computed = /\{\{(?!order_id\}\}|members\}\}|client_id\}\}|client_secret\}\})/.test(text);
    const sent = call.protocols.includes('json') && carrierOf(call.operation, call.via ?? 'json') === 'json';
    return (
      sent && call.merchant === 'first' && !computed && call.pad_to_bytes === undefined && call.latin1 === undefined
    );
  });
}

function itemsOf(fixture: Fixture, validOrder: Readonly<Record<string, unknown>>) {
  const merchants = { first: { clientId: '{{client_id}}', clientSecret: '{{client_secret}}' } };
  // The bodies that are expected may refer to earlier responses.
  const calls = fixture.calls.map((call) => ({ ...call, expect: { ...call.expect, body: undefined } }));
  const context = { merchants, orderId: `{{run}}-${fixture.file}`, validOrder, startedAtMs: 0, responses: [] };
  const filled = calls.map((call) => fillCall(call, context));
  if (filled.some(({ outgoing }) => (outgoing.bytes?.length ?? 0) > bodyBytesMax)) return [];
  return filled.map((one, index) => {
    const number = filled.length === 1 ? '' : ` (${index + 1} of ${filled.length})`;
    return itemOf(`${fixture.name}${number}`, one);
  });
}

function itemOf(name: string, { outgoing, expect }: FilledCall) {
  const { bytes, headers, method, path = '' } = jsonCall(outgoing);
  const isError = Object.hasOwn(failures, expect.outcome);
  return {
    name,
    request: {
      method,
      // The variable in an order_id, which was encoded as if it were a part of it.
      url: `{{base_url}}${path.replaceAll('%7B', '{').replaceAll('%7D', '}')}`,
      header: Object.entries(headers).map(([key, value]) => ({ key, value })),
      ...(bytes === undefined ? {} : { body: { mode: 'raw', raw: Buffer.from(bytes).toString() } }),
    },
    event: check(expect.outcome, [
      `pm.response.to.have.status(${expect.json?.status ?? 0});`,
      ...(isError ? [`pm.expect(pm.response.json().code).to.eql('${expect.outcome}');`] : []),
    ]),
  };
}

/** Postman's form of a test with some statements. */
function check(name: string, statements: readonly string[]) {
  const exec = [`pm.test('${name}', () => {`, ...statements.map((statement) => `  ${statement}`), '});'];
  return [{ listen: 'test', script: { type: 'text/javascript', exec } }];
}
