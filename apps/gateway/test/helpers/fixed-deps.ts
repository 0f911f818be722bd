import { type AccountId, createClientId, createClientSecret, type Merchant } from '@order-gateway/domain/accounts';
import type { BaseUrl } from '@order-gateway/domain/links';
import { success } from '@order-gateway/domain/result';
import { createInMemoryOrderStore } from '@order-gateway/domain/testing/in-memory-order-store';
import { testPatience } from '@order-gateway/postgres/testing/patience';
import type { Logger } from '@order-gateway/runtime/logger';
import { createAdmission } from '../../src/calls/admission.ts';
import { createBodyReader } from '../../src/calls/body/call-body.ts';
import { createCallLog } from '../../src/calls/call-record.ts';
import type { Caller } from '../../src/calls/operation.ts';
import { createUnauthenticatedCalls } from '../../src/calls/unauthenticated-calls.ts';
import type { GatewayDeps } from '../../src/gateway-deps.ts';
import {
  admissionLimits,
  bodyBytesOfAllMax,
  callTimeoutMs,
  responseTakenTimeoutMs,
  unauthenticatedLimits,
} from '../../src/limits.ts';
import { createCheckLogo } from '../../src/operations/logos/check-logo.ts';
import { createReadiness } from '../../src/runtime/start/readiness.ts';
import { createEventWatch } from '../../src/watches/event-watch.ts';
import { createPageWatch } from '../../src/watches/page-watch.ts';

const sevens = (count: number) => new Uint8Array(count).fill(7);

/** The credentials of the only account. */
export const credentials = { clientId: createClientId(sevens), clientSecret: createClientSecret(sevens) };

/** The merchant to which {@link credentials} belong. */
export const merchant: Merchant = {
  id: 7 as AccountId,
  name: 'Shop',
  checksumMode: 'versioned',
  kind: 'merchant',
  mode: 'live',
  defaultLifetimeSeconds: null,
  rateLimit: null,
};

/** The caller of a call by {@link merchant}. The call has one second left. */
export const caller: Caller<Merchant> = {
  account: merchant,
  ...credentials,
  isStrict: false,
  waitMs: 0,
  timeLeftMs: () => 1_000,
  concerns: () => {},
  pause: (wait) => wait(new AbortController().signal),
};

/** Returns dependencies with orders in memory and fixed random bytes and time: equal calls get equal responses. */
export function fixedDeps(logger: Logger): GatewayDeps {
  const store = createInMemoryOrderStore();
  return {
    store,
    randomBytes: sevens,
    now: () => 1_790_000_000_000,
    async authenticate({ clientId, clientSecret }) {
      const isValid = clientId === credentials.clientId && clientSecret === credentials.clientSecret;
      return isValid ? success(merchant) : { ok: false, failure: { kind: 'unauthenticated' } };
    },
    rateLimit: () => undefined,
    admission: createAdmission(admissionLimits, () => 0),
    unauthenticatedCalls: createUnauthenticatedCalls(unauthenticatedLimits, () => performance.now()),
    rejectionPause: async () => {},
    readBody: createBodyReader(bodyBytesOfAllMax),
    baseUrl: () => 'http://localhost' as BaseUrl,
    countRefusal: () => {},
    checkoutTemplate: undefined,
    checkoutMethod: 'get',
    signingSecrets: undefined,
    trustProxy: undefined,
    erasureKeys: undefined,
    management: undefined,
    webhookAddresses: 'public',
    ping: async () => ({ ok: false, failure: { kind: 'internal' } }),
    checkLogo: createCheckLogo(),
    findLogo: async () => ({ kind: 'unknown' }),
    pageWatch: createPageWatch(store.findForPage, logger),
    eventWatch: createEventWatch(async () => new Set(), logger),
    readiness: createReadiness({ check: async () => ({ clockOffsetMs: 0 }), logger }),
    logger,
    callTimeoutMs: callTimeoutMs * testPatience,
    responseTakenTimeoutMs: responseTakenTimeoutMs * testPatience,
    recordCall: () => {},
    callLog: createCallLog(logger),
  };
}
