import { type Fixture, type Protocol, protocols } from '@order-gateway/fixtures';
import {
  type Difference,
  differences,
  isCarried,
  type SendTarget,
  sendFixture,
  waitsForTime,
} from '@order-gateway/fixtures/replay';
import type { CallResponse } from '@order-gateway/fixtures/wire';
import { messageOf } from '../command/command.ts';

/** The outcome of a fixture in one protocol. */
export interface Replay {
  readonly fixture: Fixture;
  readonly protocol: Protocol;
  /** `-`: the protocol cannot carry any call of the fixture. `no merchant`: an account that it needs is missing. */
  readonly outcome: 'ok' | 'differs' | '-' | 'no merchant';
  readonly differences: readonly CallDifference[];
}

interface CallDifference extends Difference {
  /** The number of the call, counted from 1; 0 if not all calls could be sent. */
  readonly call: number;
}

export interface ReplayTarget extends Omit<SendTarget, 'orderId'> {
  /** The base URL of the gateway's links; `undefined` if unknown. */
  readonly baseUrl: string | undefined;
  /** Different for every run, so that fixtures can be replayed against the same gateway repeatedly. */
  readonly runId: string;
}

/**
 * Replays fixtures in all chosen protocols concurrently. In each protocol, fixtures are replayed one after the other,
 * except that fixtures that wait for a time run concurrently. Rejects only when `signal` aborts.
 */
export async function replayFixtures(
  fixtures: readonly Fixture[],
  target: ReplayTarget,
  signal: AbortSignal,
  chosen: readonly Protocol[] = protocols,
): Promise<Replay[]> {
  const byProtocol = await Promise.all(
    chosen.map(async (protocol) => {
      const replays = new Map<Fixture, Promise<Replay>>();
      for (const fixture of fixtures)
        if (waitsForTime(fixture)) replays.set(fixture, replayFixture(fixture, protocol, target));
      for (const fixture of fixtures) {
        signal.throwIfAborted();
        if (waitsForTime(fixture)) continue;
        const replay = replayFixture(fixture, protocol, target);
        replays.set(fixture, replay);
        await replay;
      }
      return Promise.all(fixtures.flatMap((fixture) => replays.get(fixture) ?? []));
    }),
  );
  return fixtures.flatMap((_, index) => byProtocol.flatMap((replays) => replays[index] ?? []));
}

/** Replays one fixture in one protocol. Never rejects: a call without a response is a difference. */
export async function replayFixture(fixture: Fixture, protocol: Protocol, target: ReplayTarget): Promise<Replay> {
  if (!isCarried(fixture, protocol)) return { fixture, protocol, outcome: '-', differences: [] };
  if ([...fixture.merchants].some((name) => target.merchants[name] === undefined)) {
    return { fixture, protocol, outcome: 'no merchant', differences: [] };
  }
  const secrets = Object.values(target.merchants).map(({ clientSecret }) => clientSecret);
  const orderId = `${target.runId}-${fixture.file}-${protocol}.`;
  const found: CallDifference[] = [];
  let first: CallResponse | undefined;
  try {
    for await (const { number, sent, expect, response } of sendFixture(fixture, protocol, { ...target, orderId })) {
      const context = { sent, first, secrets, baseUrl: target.baseUrl, nowMs: Date.now() };
      found.push(...differences(expect, response, context).map((difference) => ({ call: number, ...difference })));
      first ??= response;
    }
  } catch (error) {
    found.push({ call: 0, subject: 'calls', expected: 'all of them sent', actual: messageOf(error) });
  }
  return { fixture, protocol, outcome: found.length === 0 ? 'ok' : 'differs', differences: found };
}
