import {
  type CallResponse as Answer,
  type Client,
  type Protocol as Door,
  protocols as doors,
} from '@gateway/fixtures/client';
import { type Difference, differences } from '@gateway/fixtures/differences';
import { fillCall, type Merchants } from '@gateway/fixtures/fill-call';
import type { Fixture } from '@gateway/fixtures/fixture';

/** What a fixture came to at one door. */
export interface Replay {
  readonly fixture: Fixture;
  readonly door: Door;
  /** `not said there`: no call of the fixture can be said at the door. `no merchant`: one that it needs is not given. */
  readonly outcome: 'ok' | 'differs' | 'not said there' | 'no merchant';
  readonly differences: readonly CallDifference[];
}

interface CallDifference extends Difference {
  /** Counted from 1. */
  readonly call: number;
}

/** A gateway to replay at. */
export interface ReplayTarget {
  readonly clients: Readonly<Record<Door, Client>>;
  /** What the gateway's links begin with; `undefined` where that is not known. */
  readonly baseUrl: string | undefined;
  readonly merchants: Merchants;
  readonly validOrder: Readonly<Record<string, unknown>>;
  /** Apart from those of every other run, so that a gateway that keeps its orders can be replayed at twice. */
  readonly runId: string;
}

/**
 * Replays fixtures at every door: the doors side by side, at each door one call after the other. Rejects only when `signal`
 * aborts.
 */
export async function replayFixtures(
  fixtures: readonly Fixture[],
  target: ReplayTarget,
  signal: AbortSignal,
): Promise<Replay[]> {
  const byDoor = await Promise.all(
    doors.map(async (door) => {
      const replays: Replay[] = [];
      for (const fixture of fixtures) {
        signal.throwIfAborted();
        replays.push(await replayFixture(fixture, door, target));
      }
      return replays;
    }),
  );
  return fixtures.flatMap((_, index) => byDoor.flatMap((replays) => replays[index] ?? []));
}

/** Replays one fixture at one door. Never rejects: a call without an answer is a difference. */
export async function replayFixture(fixture: Fixture, door: Door, target: ReplayTarget): Promise<Replay> {
  const said = fixture.calls.some((call) => call.via === undefined && call.protocols.includes(door));
  if (!said) return { fixture, door, outcome: 'not said there', differences: [] };
  if ([...fixture.merchants].some((name) => target.merchants[name] === undefined)) {
    return { fixture, door, outcome: 'no merchant', differences: [] };
  }
  const secrets = Object.values(target.merchants).map(({ clientSecret }) => clientSecret);
  const orderId = `${target.runId}-${fixture.file}-${door}`;
  const found: CallDifference[] = [];
  let first: Answer | undefined;
  for (const [index, call] of fixture.calls.entries()) {
    if (!call.protocols.includes(door)) continue;
    const { outgoing, sent, expect } = fillCall(call, { ...target, orderId });
    const answer = await target.clients[call.via ?? door].send(outgoing);
    const context = { sent, first, secrets, baseUrl: target.baseUrl, nowMs: Date.now() };
    found.push(...differences(expect, answer, context).map((difference) => ({ call: index + 1, ...difference })));
    first ??= answer;
  }
  return { fixture, door, outcome: found.length === 0 ? 'ok' : 'differs', differences: found };
}
