import type { LoadSettings } from './settings.ts';

/** A latency for people: three digits that mean something. */
export function msTold(ms: number | undefined): string {
  if (ms === undefined) return '-';
  if (ms >= 10_000) return `${(ms / 1_000).toFixed(1)} s`;
  return `${ms >= 100 ? ms.toFixed(0) : ms >= 10 ? ms.toFixed(1) : ms.toFixed(2)} ms`;
}

/** A time for people; of one below ten seconds two digits. */
export function secondsTold(seconds: number): string {
  if (seconds < 10) return `${Number(seconds.toPrecision(2))} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, '0')} s`;
}

/** A part as a percentage that does not hide a few among many. */
export function partTold(part: number): string {
  if (part === 0) return '0 %';
  return part < 0.0001 ? '< 0.01 %' : `${(part * 100).toFixed(2)} %`;
}

/** The settings of a run, as names and words. */
export function settingsTold(settings: LoadSettings): [string, string][] {
  const { profile, mode, protocol, phases, connections, underWayMax, merchants, replayShare, invalidShare } = settings;
  const { workers } = settings;
  const open = mode === 'open';
  const seconds = phases.reduce((sum, phase) => sum + phase.seconds, 0);
  return [
    ['profile', profile],
    ['mode', open ? 'open: calls come when they are due' : 'closed: callers wait for their answers'],
    ['protocol', protocol],
    ['rate', open ? ratesTold(settings) : `as answers come, ${secondsTold(seconds)}`],
    ['connections', `${connections} to each door${open && workers > 1 ? ' for each process' : ''}`],
    ...(open ? [['under way at most', `${underWayMax} for each process`] as [string, string]] : []),
    ['merchants', String(merchants)],
    ['repeated orders', partTold(replayShare)],
    ['calls to be refused', partTold(invalidShare)],
    ['seed', String(settings.seed)],
    ['sending processes', String(workers)],
  ];
}

/** The first phases tell a profile; thousands of repeated ones would not. */
const phasesTold = 6;

function ratesTold({ phases }: LoadSettings): string {
  const told = phases.slice(0, phasesTold).map(({ seconds, rateFrom, rateTo }) => {
    const rate = rateFrom === rateTo ? `${rateFrom}/s` : `${rateFrom}/s to ${rateTo}/s`;
    return `${rate} for ${secondsTold(seconds)}`;
  });
  const more = phases.length - told.length;
  return `${told.join(', ')}${more > 0 ? `, and ${more} phases more` : ''}`;
}
