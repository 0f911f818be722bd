import type { Logger } from '@order-gateway/runtime/logger';
import type { Customer, Gateway } from '../gateway/gateway.ts';
import type { Metrics } from '../metrics.ts';
import {
  type Account,
  type Call,
  type Provider,
  ProviderError,
  readReversals,
  readStatus,
  type SeenReversals,
} from '../providers/provider.ts';
import type { Attempt, Store } from '../store/store.ts';
import { traced } from '../tracing.ts';
import { type Actions, life, type Situation, type Step } from './life.ts';
import { reportReversals } from './report-reversals.ts';

/** The dependencies of attempts. */
export interface AdvanceDeps {
  readonly store: Store;
  readonly gateway: Gateway;
  readonly providers: ReadonlyMap<string, Provider>;
  /** Returns a connected account with its secrets. */
  readonly accountOf: (connectionId: string) => Promise<Account>;
  /** The address at which customers reach the checkout. */
  readonly baseUrl: () => string;
  readonly logger: Logger;
  readonly metrics: Pick<Metrics, 'countState' | 'countDifference'>;
}

/** Continues an attempt. */
export type Advance = ReturnType<typeof createAdvance>;

/** The pauses after errors double up to this one. */
const pauseSecondsMax = 600;

/** The pause before an attempt whose state did not change is continued again. */
const unchangedSeconds = 5;

/** No attempt goes through more states than this in one run. */
const stepsMax = 12;

/**
 * Returns the function that takes all steps of an attempt that are possible now, by the table in `life.ts`. It returns
 * the attempt in its new state, and skips an attempt that another process is working on. It never rejects because of a
 * provider or the gateway: the attempt is then continued later.
 */
export function createAdvance(deps: AdvanceDeps) {
  const { store, gateway, baseUrl, logger, metrics } = deps;

  /** Asks the provider for its view of the attempt if the state's rules need it, and returns the step to take. */
  async function decide(attempt: Attempt, facts: Pick<Situation, 'nowMs' | 'isUnwanted' | 'isNew'>): Promise<Step> {
    const rules = life[attempt.state];
    const isListed = deps.providers.get(attempt.provider)?.recent !== undefined;
    const situation = { ...facts, attempt, isListed, act: actionsOf(attempt) };
    if ('unseen' in rules) return rules.unseen({ ...situation, seen: undefined });
    const seen = await readStatus(await providerOf(deps, attempt), attempt);
    const rule = rules[seen.is] as (situation: Situation) => Step | Promise<Step>;
    return rule({ ...situation, seen });
  }

  /** Returns the actions, of which only those at the provider need its key. */
  function actionsOf(attempt: Attempt): Actions {
    const send = async <Input, Result>(
      callOf: (provider: Provider) => Call<Input, Result>,
      purpose: string,
      input: Input,
      customer?: Customer,
    ) => {
      const { provider, account } = await providerOf(deps, attempt);
      return sendCall(store, { attempt, account, purpose, customer }, callOf(provider), input);
    };
    const backUrl = `${baseUrl()}/back/${attempt.attemptId}`;
    return {
      start: (leaseSeconds) => gateway.start(attempt, leaseSeconds),
      end: () => gateway.end(attempt),
      record: () => gateway.record(attempt),
      open: (customer) => send(({ open }) => open, 'open', { backUrl }, customer),
      capture: () => send(({ capture }) => capture, 'capture', undefined),
      close: (seen) => send(({ close }) => close, 'close', seen),
      // Under the key of a refund that failed, the provider would only repeat its response.
      refund: (input, failed) => send(({ refund }) => refund, `refund${failed || ''}`, input),
      report: () => lookAtReversals(deps, attempt),
    };
  }

  async function advance(attemptId: string, isUnwanted: boolean): Promise<Attempt | undefined> {
    const leased = await store.lease(attemptId);
    if (leased === undefined) return store.find(attemptId);
    const nowMs = leased.now.getTime();
    let attempt: Attempt = leased;
    let wait: { seconds: number | null; failed: boolean } = { seconds: unchangedSeconds, failed: false };
    try {
      let repeated = 0;
      for (let steps = 0; steps < stepsMax; steps += 1) {
        const step = await decide(attempt, { nowMs, isUnwanted, isNew: attempt.state !== leased.state });
        const isWaiting = 'waitSeconds' in step;
        const changed =
          step.change === undefined && isWaiting
            ? attempt
            : await store.change(attempt, { ...step.change, ...(!isWaiting && { state: step.next }) });
        if (isWaiting) wait = { seconds: step.waitSeconds, failed: false };
        // Another process changed the attempt, or a newer attempt of the order is unfinished.
        if (isWaiting || changed === undefined) break;
        // A call took effect, but the provider does not show it yet.
        if (changed.state === attempt.state && ++repeated > 1) break;
        if (changed.state !== attempt.state) {
          const { state, provider, reason } = changed;
          metrics.countState(provider, state);
          logger.info({ attempt_id: attemptId, provider, state, reason }, 'attempt');
        }
        attempt = changed;
      }
    } catch (error) {
      const seconds = Math.min(2 ** (attempt.failures + 1), pauseSecondsMax);
      wait = { seconds, failed: true };
      logger.warn(
        { attempt_id: attemptId, provider: attempt.provider, state: attempt.state, error: errorCode(error) },
        'attempt waits',
      );
    }
    await store.release(leased, wait);
    return (await store.find(attemptId)) ?? attempt;
  }

  return (attemptId: string, { isUnwanted = false }: { readonly isUnwanted?: boolean } = {}) =>
    traced('attempt', { attributes: { attempt_id: attemptId } }, () => advance(attemptId, isUnwanted));
}

/** Returns the provider of an attempt, and the account at which the attempt was opened. */
export async function providerOf(
  { providers, accountOf }: Pick<AdvanceDeps, 'providers' | 'accountOf'>,
  { provider: name, connectionId }: Attempt,
) {
  const provider = providers.get(name);
  if (provider === undefined) throw new Error(`there is no provider ${name}`);
  return { provider, account: connectionId === null ? undefined : await accountOf(connectionId) };
}

/** Reports the refunds and disputes that the provider has of a payment, and returns them. */
export async function lookAtReversals(
  deps: Pick<AdvanceDeps, 'providers' | 'accountOf' | 'gateway' | 'logger'>,
  attempt: Attempt,
): Promise<SeenReversals> {
  const seen = await readReversals(await providerOf(deps, attempt), attempt);
  await reportReversals(deps, attempt, seen);
  return seen;
}

/** Stores a call of a provider with its idempotency key, then sends it. */
export async function sendCall<Input, Result>(
  store: Pick<Store, 'prepareCall' | 'endCall'>,
  { attempt, account, purpose, customer }: CallContext,
  { request, send }: Call<Input, Result>,
  input: Input,
): Promise<Result> {
  const call = await store.prepareCall(attempt, purpose, request(attempt, input));
  try {
    return await send(account, call.request, call.key, customer);
  } catch (error) {
    if (error instanceof ProviderError && error.kind !== 'unanswered') await store.endCall(call.key, error.code);
    throw error;
  }
}

interface CallContext {
  readonly attempt: Attempt;
  readonly account: Account | undefined;
  /** A call with the same purpose has the same key until the provider has responded. */
  readonly purpose: string;
  readonly customer?: Customer | undefined;
}

/** Returns what a log line may contain of an error, whose message can contain values of a request. */
export function errorCode(error: unknown): string {
  if (error instanceof ProviderError) return error.message;
  const code: unknown = Object(error).code;
  return `${error instanceof Error ? error.name : typeof error}${code === undefined ? '' : ` ${code}`}`;
}
