import { expect, test } from 'vitest';
import { eventTypes } from '../orders/index.ts';
import {
  type EndpointInput,
  type EndpointSettings,
  parseEndpoint,
  parseFailedSince,
} from './parse-webhook-endpoint.ts';

const url = 'https://shop.example/hook';

test.each<[EndpointInput, EndpointSettings]>([
  [{}, { url: undefined, eventTypes: undefined, status: undefined }],
  [
    { url: '', event_types: null, status: null },
    { url: undefined, eventTypes: undefined, status: undefined },
  ],
  [
    { url, event_types: [], status: 'disabled' },
    { url, eventTypes: undefined, status: 'disabled' },
  ],
  [
    { event_types: ['*'], status: '' },
    { url: undefined, eventTypes: null, status: undefined },
  ],
  [
    { event_types: ['order.expired', 'order.paid', 'order.paid'] },
    { url: undefined, eventTypes: ['order.paid', 'order.expired'], status: undefined },
  ],
  [{ event_types: [...eventTypes] }, { url: undefined, eventTypes: [...eventTypes], status: undefined }],
])('%o is read as the settings %o', (input, settings) => {
  expect(parseEndpoint(input, false)).toEqual({ ok: true, value: settings });
});

test.each<[EndpointInput, string]>([
  [{ url: '' }, 'url missing'],
  [{ url: null }, 'url missing'],
  [{}, 'url missing'],
  [{ url, event_types: 'order.paid' }, 'event_types wrong_type'],
  [{ url, event_types: ['*', 'order.paid'] }, 'event_types not_allowed'],
  [{ url, event_types: ['order.created'] }, 'event_types not_allowed'],
  [{ url, status: 'on' }, 'status not_allowed'],
])('a new endpoint with %o is invalid: %s', (input, error) => {
  const parsed = parseEndpoint(input, true);
  expect(parsed.ok ? [] : parsed.failure.errors.map(({ field, code }) => `${field} ${code}`)).toEqual([error]);
});

test.each<[unknown, number | string]>([
  ['1970-01-01T00:00:00Z', 0],
  ['9999-12-31T23:59:59.999Z', Date.UTC(9999, 11, 31, 23, 59, 59, 999)],
  ['1969-12-31T23:59:59.999Z', 'out_of_range'],
  ['', 'missing'],
  [undefined, 'missing'],
  ['today', 'bad_format'],
])('the failed_since %o is read as %o', (value, expected) => {
  const parsed = parseFailedSince(value);
  expect(parsed.ok ? parsed.value : parsed.failure.errors[0]?.code).toBe(expected);
});
