import { type EventType, eventTypes } from '../orders/order-states.ts';
import {
  absentIfEmpty,
  checkField,
  errorsIn,
  type InvalidRequest,
  missing,
  type Received,
  unlessInvalid,
} from '../requests/check-field.ts';
import { urlRule } from '../requests/field-rules.ts';
import { checkUnixTime } from '../requests/iso-time.ts';
import type { Result } from '../result.ts';
import { allEventTypes, type EndpointStatus, endpointStatuses } from './webhook-endpoint.ts';

/** The settings of an endpoint. `undefined`: not sent. */
export interface EndpointSettings {
  readonly url: string | undefined;
  /** `null`: all. */
  readonly eventTypes: readonly EventType[] | null | undefined;
  readonly status: EndpointStatus | undefined;
}

/** The settings as an API received them. */
export type EndpointInput = Received<'url' | 'event_types' | 'status'>;

/**
 * Checks the settings of an endpoint. The gateway checks separately whether the address of the URL is allowed. An empty
 * list of types counts as absent, because Protobuf does not distinguish them. Returns the settings, or an error for
 * each invalid one.
 */
export function parseEndpoint(input: EndpointInput, isNew: boolean): Result<EndpointSettings, InvalidRequest> {
  const url = isAbsent(input.url) && !isNew ? undefined : checkField(urlRule, absentIfEmpty(input.url));
  const types = checkTypes(input.event_types);
  const status = isAbsent(input.status) ? undefined : checkStatus(input.status);
  const errors = errorsIn({ url, event_types: types, status });
  return unlessInvalid(errors, { url, eventTypes: types, status } as EndpointSettings);
}

/**
 * Checks the `failed_since` of a request to redeliver failed events. Returns the time in milliseconds since 1970-01-01
 * UTC.
 */
export function parseFailedSince(value: unknown): Result<number, InvalidRequest> {
  const time = isAbsent(value) ? missing : checkUnixTime(value);
  return unlessInvalid(errorsIn({ failed_since: time }), time as number);
}

function checkTypes(value: unknown) {
  if (value === undefined || value === null) return undefined;
  if (!Array.isArray(value)) return { code: 'wrong_type', message: 'must be a list' } as const;
  if (value.length === 0) return undefined;
  if (value.length === 1 && value[0] === allEventTypes) return null;
  const types = eventTypes.filter((type) => value.includes(type));
  const isKnown = value.every((type) => (eventTypes as readonly unknown[]).includes(type));
  return isKnown
    ? types
    : ({
        code: 'not_allowed',
        message: `must contain only ${eventTypes.join(', ')}, or only ${allEventTypes}`,
      } as const);
}

function checkStatus(value: unknown) {
  const status = endpointStatuses.find((known) => known === value);
  return status ?? ({ code: 'not_allowed', message: `must be ${endpointStatuses.join(' or ')}` } as const);
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null || value === '';
}
