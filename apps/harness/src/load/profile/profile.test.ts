import { expect, test } from 'vitest';
import { type LoadFlags, loadCommand, settingsFrom } from './load-command.ts';
import { arrivalsOf, constantRate, listProfiles, loadProfile, type Phase, parseProfile, shares } from './profile.ts';

const names = ['burst', 'lifecycle', 'smoke', 'soak', 'steady'];

test('the profiles are listed with their purposes', () => {
  // A purpose continues on further lines, which begin with more spaces.
  const listed = [...listProfiles().matchAll(/^ {2}(\S+) +(.+(?:\n {3,}.+)*)/gm)];
  expect(listed.map(([, name]) => name)).toEqual(names);
  for (const [, , purpose = ''] of listed) expect(purpose.length).toBeGreaterThan(40);
});

test.for(names)('the profile %s is valid and has all four thresholds', (name) => {
  const { thresholds } = loadProfile(name);
  expect(Object.keys(thresholds).sort()).toEqual(['dropped_rate', 'error_rate', 'lost', 'p99_ms']);
  expect(thresholds.lost).toBe(0);
});

test('a profile has the settings of its file, and defaults for the rest', () => {
  const phase = { seconds: 2, rate: 5, to: 9 };
  expect(parseProfile({ protocol: 'grpc', phases: [phase, { seconds: 1, rate: 3 }], repeat: 2 })).toEqual({
    about: '',
    mode: 'open',
    protocol: 'grpc',
    connections: 16,
    max_pending: 1_000,
    merchants: 1,
    ...Object.fromEntries(shares.map(([, name]) => [name, 0])),
    metadata_share: 0,
    thresholds: {},
    phases: [phase, { seconds: 1, rate: 3, to: 3 }, phase, { seconds: 1, rate: 3, to: 3 }],
  });
});

const phases = [{ seconds: 1, rate: 1 }];

test.for([
  [[], 'expected object'],
  [{}, 'at phases'],
  [{ phases: [] }, 'at phases'],
  [{ phases, rates: 1 }, 'rates'],
  [{ phases: [{ seconds: 0, rate: 1 }] }, 'at phases[0].seconds'],
  [{ phases: [{ seconds: 1 }] }, 'at phases[0].rate'],
  [{ phases: [{ seconds: 1, rate: 0 }] }, 'must send something'],
  [{ phases: [{ seconds: 1, rate: '1' }] }, 'at phases[0].rate'],
  [{ phases: [{ seconds: 90_000, rate: 1 }] }, 'at phases[0].seconds'],
  [{ phases: [{ seconds: 80_000, rate: 1 }], repeat: 2 }, 'must not last longer'],
  [{ phases, protocol: 'soap' }, 'at protocol'],
  [{ phases, mode: 'ajar' }, 'at mode'],
  [{ phases, connections: 9_999 }, 'at connections'],
  [{ phases, replay_share: 0.6, invalid_share: 0.6 }, 'the shares exceed 1'],
  [{ phases, get_share: 0.3, pay_share: 0.3, cancel_share: 0.3, list_share: 0.2 }, 'the shares exceed 1'],
  [{ phases, thresholds: { p99: 1 } }, 'p99'],
  [{ phases, thresholds: { error_rate: 2 } }, 'at thresholds.error_rate'],
] as const)('the profile %j is rejected: %s', ([profile, reason]) => {
  expect(() => parseProfile(profile)).toThrow(reason);
});

test('an error names the file, or lists the available profiles', () => {
  expect(() => loadProfile('./no-such.json')).toThrow(/^no-such\.json: ENOENT/);
  expect(() => loadProfile('no-such')).toThrow(/^There is no profile no-such\. The profiles are burst, /);
});

test('options override the profile', () => {
  const changes = { protocol: 'json', replayShare: 0, merchants: 2, seed: 5 };
  expect(settingsFrom({ profile: 'smoke', rate: 7, rampTo: 9, ...changes })).toMatchObject({
    profile: 'smoke',
    protocol: 'json',
    merchants: 2,
    replay_share: 0,
    invalid_share: 0.05,
    seed: 5,
    audit: true,
    phases: [{ seconds: 15, rate: 7, to: 9 }],
  });
  expect(settingsFrom({})).toMatchObject({ phases: [{ seconds: 10, rate: 100 }], audit: false, thresholds: {} });
  expect(settingsFrom({ audit: true, duration: 3 })).toMatchObject({
    phases: [{ seconds: 3 }],
    thresholds: { lost: 0 },
  });
});

function parsed(...args: string[]): LoadFlags {
  const command = loadCommand()
    .exitOverride()
    .allowExcessArguments(false)
    .configureOutput({ writeErr: () => {} });
  return command.parse(args, { from: 'user' }).opts();
}

test('arguments become numbers, seconds and names', () => {
  const args = '--rate 7.5 --ramp-to 9 --duration 2m --mode closed --max-pending 5 --audit'.split(' ');
  expect(parsed(...args)).toEqual({ rate: 7.5, rampTo: 9, duration: 120, mode: 'closed', maxPending: 5, audit: true });
});

test.for([
  [['--rate', 'many'], "option '--rate <n>' argument 'many' is invalid"],
  [['--duration', '1 hour'], "option '--duration <time>' argument '1 hour' is invalid"],
  [['--mode', 'ajar'], 'Allowed choices are open, closed'],
  [['--rates', '1'], "unknown option '--rates'"],
  [['smoke'], 'too many arguments'],
  [['--profile', 'burst', '--duration', '20s'], '--rate must be given too'],
  [['--replay-share', '0.6', '--invalid-share', '0.6'], 'the shares exceed 1'],
  [['--merchants', '0'], 'at merchants'],
] as const)('the arguments %j are rejected: %s', ([args, reason]) => {
  expect(() => settingsFrom(parsed(...args))).toThrow(reason);
});

function scheduledTimes(phases: readonly Phase[]): number[] {
  const arrivals = arrivalsOf(phases);
  return Array.from({ length: arrivals.count }, (_, number) => arrivals.scheduledMs(number));
}

/** The number of calls scheduled in each second. */
function perSecond(phases: readonly Phase[]): number[] {
  const counts: number[] = Array.from({ length: arrivalsOf(phases).seconds }, () => 0);
  for (const scheduled of scheduledTimes(phases)) {
    const second = Math.floor(scheduled / 1_000 + 1e-9);
    counts[second] = (counts[second] ?? 0) + 1;
  }
  return counts;
}

test('a constant rate spaces its calls evenly from the start', () => {
  expect(scheduledTimes(constantRate(4, 2))).toEqual([0, 250, 500, 750, 1_000, 1_250, 1_500, 1_750]);
});

test('a ramp schedules as many calls as its rate implies, whether it rises or falls', () => {
  const ramp = [{ seconds: 10, rate: 0, to: 100 }];
  expect(perSecond(ramp)).toEqual([5, 15, 25, 35, 45, 55, 65, 75, 85, 95]);
  const down = [{ seconds: 10, rate: 100, to: 0 }];
  expect(perSecond(down).reduce((sum, count) => sum + count)).toBe(500);
  expect(perSecond(down)[0]).toBe(95);
});

test('the scheduled times of calls can be read in any order', () => {
  const arrivals = arrivalsOf([...constantRate(10, 1), ...constantRate(20, 1)]);
  expect([25, 3, 12].map((number) => arrivals.scheduledMs(number))).toEqual([1_750, 300, 1_100]);
});

test('arrival times never decrease, across all phases', () => {
  const phases = [...constantRate(7, 3), { seconds: 5, rate: 7, to: 300 }, ...constantRate(0.5, 4)];
  const scheduled = scheduledTimes(phases);
  expect(scheduled).toEqual(scheduled.toSorted((a, b) => a - b));
  expect(Math.max(...scheduled)).toBeLessThan(12_000);
});

test('a rate of 0 schedules no calls', () => {
  expect(arrivalsOf([])).toMatchObject({ count: 0, seconds: 0 });
  expect(arrivalsOf(constantRate(0, 5)).count).toBe(0);
});
