import { expect, test } from 'vitest';
import { createOrderPath } from '../helpers/grpc-call.ts';
import { acceptedValues, rejectedDocuments, rejectedValues } from '../helpers/json-corpus.ts';
import { useGateway } from '../helpers/running-gateway.ts';
import { postJson } from '../helpers/send-order.ts';

const gateway = useGateway();

/** The status and the error code that a body gets at a protocol. */
async function judge(path: string, body: Uint8Array | string): Promise<[status: number, code: string | undefined]> {
  const response = await postJson(gateway, path, body);
  const answer = (await response.json()) as { code?: string; details?: { debug?: { reason?: string } }[] };
  return [response.status, answer.details?.[0]?.debug?.reason?.toLowerCase() ?? answer.code];
}

const protocols = ['/order', createOrderPath];

test('the corpus has at least 300 different documents', () => {
  const values = [...acceptedValues, ...rejectedValues];
  expect(new Set(values).size).toBe(values.length);
  expect(values.length + rejectedDocuments.length).toBeGreaterThanOrEqual(300);
});

test.each(protocols)('%s reads all JSON that RFC 8259 accepts, and validates the fields', async (protocol) => {
  for (const value of acceptedValues) {
    expect([value, ...(await judge(protocol, `{"order_note":${value},"unknown":${value}}`))]).toEqual([
      value,
      400,
      'invalid_order',
    ]);
  }
});

test.each(protocols)('%s rejects what is not JSON', async (protocol) => {
  for (const value of rejectedValues) {
    expect([value, ...(await judge(protocol, `{"order_note":${value}}`))]).toEqual([value, 400, 'malformed_json']);
  }
});

test.each(protocols)('%s rejects what is not one object in UTF-8', async (protocol) => {
  for (const [name, body] of rejectedDocuments) {
    expect([name, ...(await judge(protocol, body))]).toEqual([name, 400, 'malformed_json']);
  }
});
