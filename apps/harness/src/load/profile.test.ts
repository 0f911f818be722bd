import { readdir } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { loadProfile, parseProfile, profilesFolder } from './profile.ts';

test.for(await readdir(profilesFolder))('%s can be run and judges all four thresholds', async (file) => {
  const profile = await loadProfile(file.replace('.json', ''));
  expect(Object.keys(profile.thresholds).sort()).toEqual(['dropped_rate', 'error_rate', 'lost', 'p99_ms']);
  expect(profile.thresholds.lost).toBe(0);
});

test('a profile says what it says, and the usual for the rest', () => {
  const text = '{ "protocol": "grpc", "phases": [{ "seconds": 2, "rate": 5, "to": 9 }], "repeat": 2 }';
  const phase = { seconds: 2, rateFrom: 5, rateTo: 9 };
  expect(parseProfile('mine', text)).toEqual({
    ...{ profile: 'mine', mode: 'open', protocol: 'grpc', phases: [phase, phase], connections: 16 },
    ...{ underWayMax: 1_000, merchants: 1, replayShare: 0, invalidShare: 0, thresholds: {} },
  });
});

const phases = '"phases": [{ "seconds": 1, "rate": 1 }]';

test.for([
  ['{', 'JSON'],
  ['[]', 'the profile must be an object'],
  ['{}', 'phases must hold a phase'],
  [`{ ${phases}, "rates": 1 }`, 'unknown member rates'],
  ['{ "phases": [{ "seconds": 0, "rate": 1 }] }', 'phase 1.seconds must be a number from 0.001'],
  ['{ "phases": [{ "seconds": 1 }] }', 'phase 1.rate is missing'],
  ['{ "phases": [{ "seconds": 1, "rate": "1" }] }', 'phase 1.rate must be a number'],
  ['{ "phases": [{ "seconds": 90000, "rate": 1 }] }', 'seconds must be a number from 0.001 to 86400'],
  ['{ "phases": [{ "seconds": 80000, "rate": 1 }], "repeat": 2 }', 'must not last longer'],
  [`{ ${phases}, "protocol": "soap" }`, 'protocol must be one of json, connect'],
  [`{ ${phases}, "mode": "ajar" }`, 'mode must be one of open, closed'],
  [`{ ${phases}, "connections": 9999 }`, 'connections must be at most 5000'],
  [`{ ${phases}, "replay_share": 0.6, "invalid_share": 0.6 }`, 'must not exceed 1 together'],
  [`{ ${phases}, "thresholds": { "p99": 1 } }`, 'unknown member p99'],
  [`{ ${phases}, "thresholds": { "error_rate": 2 } }`, 'thresholds.error_rate must be a number from 0 to 1'],
] as const)('%s is refused: %s', ([text, reason]) => {
  expect(() => parseProfile('bad', text)).toThrow(reason);
});

test('a fault is told with the file', async () => {
  await expect(loadProfile('no-such')).rejects.toThrow('no-such.json: there is no such file');
});
