import { type FailureCode, failures } from '@gateway/domain/failure';
import { fieldErrorCodes } from '@gateway/domain/field-rules';
import { orderFieldNames } from '@gateway/domain/order-fields';
import { expect, test } from 'vitest';
import { fixturesFolder, loadFixtures } from './fixtures/load-fixtures.ts';
import { writeJson } from './fixtures/written-number.ts';

const { fixtures } = await loadFixtures(fixturesFolder);
const expectations = fixtures.flatMap(({ calls }) => calls).map((call) => call.expect);

/** Codes that a healthy gateway cannot be brought to answer by one caller who sends one call after the other. */
const notProvoked: Partial<Record<FailureCode, string>> = {
  rate_limited: 'needs more calls than a merchant’s share',
  overloaded: 'needs more calls at once than the gateway takes',
  unavailable: 'needs a database that does not answer',
  deadline_exceeded: 'needs a database that answers late',
  internal: 'needs a fault of the gateway',
};

test('there are enough fixtures, each with a promise of its own', () => {
  expect(fixtures.length).toBeGreaterThanOrEqual(60);
  expect(new Set(fixtures.map(({ name }) => name)).size).toBe(fixtures.length);
});

test('the digits in the files are those that were written: formatters like to shorten 10.00', () => {
  const amounts = fixtures
    .filter(({ file }) => file === 'amount-spellings-of-ten')
    .flatMap(({ calls }) => calls.map(({ content }) => (content.kind === 'order' ? content.value.order_amount : '')));
  expect(writeJson(amounts)).toBe('[10.00,10,10.0,1e1,1E+1,100e-1,0.1e2,10.000000000000000000]');
});

test.for(Object.keys(failures) as FailureCode[])(
  'the failure %s is shown by a fixture, or it is told why not',
  (code) => {
    const shown = expectations.some(({ outcome }) => outcome === code);
    expect({ code, shown }).toEqual({ code, shown: notProvoked[code] === undefined });
  },
);

test.for(fieldErrorCodes)('the field code %s is shown by a fixture', (code) => {
  expect(expectations.flatMap(({ errors }) => errors).map(([, shown]) => shown)).toContain(code);
});

test.for(orderFieldNames)('%s is shown broken, and, but for order_id and the checksum, in conflict', (field) => {
  expect(expectations.flatMap(({ errors }) => errors).map(([shown]) => shown)).toContain(field);
  const identifies = field === 'order_id' || field === 'order_checksum';
  expect(expectations.some(({ fields }) => fields.includes(field))).toBe(!identifies);
});
