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
import type { CallsDeps } from '../../src/calls/receive.ts';
import { createUnauthenticatedCalls } from '../../src/calls/unauthenticated-calls.ts';
import type { HttpServerDeps } from '../../src/http/server.ts';
import {
  admissionLimits,
  bodyBytesOfAllMax,
  callTimeoutMs,
  responseTakenTimeoutMs,
  unauthenticatedLimits,
} from '../../src/limits.ts';
import { createCheckLogo } from '../../src/operations/logos/check-logo.ts';
import type { OperationDeps } from '../../src/operations/service.ts';
import type { CheckoutLink } from '../../src/pages/payment-page/payment-page.ts';
import type { GrpcServerDeps } from '../../src/rpc/server.ts';
import { createReadiness } from '../../src/runtime/start/readiness.ts';
import { createEventWatch } from '../../src/watches/event-watch.ts';

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

/** The dependencies of the servers on both ports. */
export interface FixedDeps
  extends OperationDeps,
    CallsDeps,
    CheckoutLink,
    Pick<HttpServerDeps & GrpcServerDeps, 'readiness' | 'trustProxy' | 'responseTakenTimeoutMs'> {}

/** Returns dependencies with orders in memory and fixed random bytes and time: equal calls get equal responses. */
export function fixedDeps(logger: Logger): FixedDeps {
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
    lateDays: () => 7,
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
    eventWatch: createEventWatch(async () => new Set(), logger),
    readiness: createReadiness({ check: async () => ({ clockOffsetMs: 0, servedRatio: 1 }), logger }),
    logger,
    callTimeoutMs: callTimeoutMs * testPatience,
    responseTakenTimeoutMs: responseTakenTimeoutMs * testPatience,
    recordCall: () => {},
    callLog: createCallLog(logger),
  };
}
