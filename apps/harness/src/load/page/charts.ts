import { bandEndsMs } from '../latencies.ts';
import type { LoadReport } from '../report.ts';
import type { SecondTotals } from '../totals.ts';
import { msTold, secondsTold } from '../words.ts';
import { escaped } from './escape.ts';
import { across, line, logPlace, plot, roundTicks, type Tick, up } from './plot.ts';

/** Stretches of a run as its drawings show it: seconds, put together where there are more than a drawing can tell apart. */
export interface Stretch {
  /** From the run's start. */
  readonly fromSecond: number;
  readonly seconds: number;
  readonly sentPerSecond: number;
  readonly donePerSecond: number;
  /** Wrong and dropped. */
  readonly failedPerSecond: number;
  readonly p50: number | undefined;
  /** Of the worst second in it, as those of several seconds cannot be put together. */
  readonly p99: number | undefined;
  readonly bands: readonly number[];
}

const stretchesMax = 160;

export function stretchesOf(seconds: readonly SecondTotals[]): Stretch[] {
  const length = Math.max(1, Math.ceil(seconds.length / stretchesMax));
  return Array.from({ length: Math.ceil(seconds.length / length) }, (_, index) => {
    const part = seconds.slice(index * length, (index + 1) * length);
    const perSecond = (of: (second: SecondTotals) => number) =>
      part.reduce((sum, one) => sum + of(one), 0) / part.length;
    return {
      ...{ fromSecond: index * length, seconds: part.length, sentPerSecond: perSecond(({ sent }) => sent) },
      donePerSecond: perSecond(({ done }) => done),
      failedPerSecond: perSecond(({ wrong, dropped }) => wrong + dropped),
      p50: middle(part.flatMap(({ p50_ms: ms }) => ms ?? [])),
      p99: largest(part.flatMap(({ p99_ms: ms }) => ms ?? [])),
      bands: part[0]?.bands.map((_, band) => part.reduce((sum, { bands }) => sum + (bands[band] ?? 0), 0)) ?? [],
    };
  });
}

/** Calls a second over time. */
export function throughputChart(stretches: readonly Stretch[]): string {
  const most = Math.max(
    1,
    ...stretches.flatMap(({ sentPerSecond, donePerSecond, failedPerSecond: failed }) => [
      sentPerSecond,
      donePerSecond,
      failed,
    ]),
  );
  const marks = roundTicks(most);
  const top = marks.at(-1) ?? 1;
  const series = (of: (stretch: Stretch) => number) => overTime(stretches, (stretch) => of(stretch) / top);
  return plot(
    'Calls sent, answered and failed in each second',
    { x: timeTicks(stretches), y: marks.map((mark) => ({ at: mark / top, label: String(mark) })) },
    line(
      'sent',
      series(({ sentPerSecond }) => sentPerSecond),
    ) +
      line(
        'done',
        series(({ donePerSecond }) => donePerSecond),
      ) +
      line(
        'failed',
        series(({ failedPerSecond }) => failedPerSecond),
      ),
  );
}

/** Answers by latency band over time, the more the stronger; with the median and the 99th percentile of each second. */
export function heatChart(stretches: readonly Stretch[]): string {
  const used = stretches.flatMap(({ bands }) => bands.flatMap((count, band) => (count > 0 ? [band] : [])));
  const low = Math.max(0, Math.min(bandEndsMs.length, ...used) - 1);
  const high = Math.min(bandEndsMs.length, Math.max(0, ...used) + 1);
  const rows = high - low + 1;
  const most = Math.max(1, ...stretches.flatMap(({ bands }) => bands));
  const cells = stretches.flatMap(({ bands }, column) =>
    bands.slice(low, high + 1).map((count, row) => {
      if (count === 0) return '';
      const [left, right] = [across(column / stretches.length), across((column + 1) / stretches.length)];
      const [top, bottom] = [up((row + 1) / rows), up(row / rows)];
      // The square root lets a few slow answers be seen beside thousands of quick ones.
      const strength = Math.max(0.08, Math.sqrt(count / most)).toFixed(2);
      const told = `${escaped(count)} answers in ${escaped(bandTold(row + low))}`;
      const size = `x="${left}" y="${top}" width="${(right - left).toFixed(1)}" height="${(bottom - top).toFixed(1)}"`;
      return `<rect class="cell" ${size} fill-opacity="${strength}"><title>${told}</title></rect>`;
    }),
  );
  const edges = bandEndsMs.slice(low, high).map((end, row): Tick => ({ at: (row + 1) / rows, label: msShort(end) }));
  return plot('How many answers took how long, over time', { x: timeTicks(stretches), y: edges }, cells.join(''));
}

/** Median and 99th percentile over time. */
export function latencyChart(stretches: readonly Stretch[]): string {
  const values = stretches.flatMap(({ p50, p99 }) => [p50 ?? [], p99 ?? []].flat());
  const axis = logAxis(values);
  const place = (ms: number | undefined) => (ms === undefined ? undefined : axis.place(ms));
  return plot(
    'The median and the 99th percentile of each second',
    { x: timeTicks(stretches), y: axis.ticks },
    line(
      'p50',
      overTime(stretches, ({ p50 }) => place(p50)),
    ) +
      line(
        'p99',
        overTime(stretches, ({ p99 }) => place(p99)),
      ),
  );
}

/** Latency by percentile; the axis is stretched towards 100 %, where the slow answers are. */
export function percentileChart({ percentiles }: Pick<LoadReport, 'percentiles'>): string {
  const axis = logAxis(percentiles.map(([, ms]) => ms));
  const end = nines(percentiles.at(-1)?.[0] ?? 0);
  const place = (percent: number) => (end === 0 ? 0 : nines(percent) / end);
  const ticks = [0, 50, 90, 99, 99.9, 99.99, 99.999].filter((percent) => nines(percent) <= end);
  return plot(
    'Latency by percentile',
    { x: ticks.map((percent) => ({ at: place(percent), label: `${percent} %` })), y: axis.ticks },
    line(
      'p99',
      percentiles.map(([percent, ms]) => ({ x: place(percent), y: axis.place(ms) })),
    ),
  );
}

/** How many nines a percentile has: 1 for 90 %, 2 for 99 %. */
function nines(percent: number): number {
  return percent >= 100 ? 0 : -Math.log10(1 - percent / 100);
}

function logAxis(values: readonly number[]): { readonly place: (ms: number) => number; readonly ticks: Tick[] } {
  const known = values.filter((ms) => ms > 0);
  const least = 10 ** Math.floor(Math.log10(Math.min(1, ...known)));
  const most = Math.max(10 ** Math.ceil(Math.log10(Math.max(10, ...known))), least * 10);
  const place = (ms: number) => logPlace(Math.max(ms, least), least, most);
  const decades = Math.round(Math.log10(most / least));
  const marks = Array.from({ length: decades + 1 }, (_, decade) => Number((least * 10 ** decade).toPrecision(1)));
  return { place, ticks: marks.map((ms) => ({ at: place(ms), label: msShort(ms) })) };
}

function overTime(stretches: readonly Stretch[], value: (stretch: Stretch) => number | undefined) {
  return stretches.map((stretch, index) => ({ x: (index + 0.5) / stretches.length, y: value(stretch) }));
}

/** Steps that people read times in, in seconds. */
const timeSteps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400];
const timeTicksMax = 6;

function timeTicks(stretches: readonly Stretch[]): Tick[] {
  const seconds = stretches.reduce((sum, stretch) => sum + stretch.seconds, 0);
  const step = timeSteps.find((some) => seconds / some <= timeTicksMax) ?? 14_400;
  return Array.from({ length: seconds === 0 ? 0 : Math.floor(seconds / step) + 1 }, (_, index) => ({
    at: (index * step) / seconds,
    label: secondsTold(index * step),
  }));
}

function bandTold(band: number): string {
  const [from, to] = [bandEndsMs[band - 1], bandEndsMs[band]];
  return to === undefined ? `more than ${msTold(from)}` : `${msShort(from ?? 0)} to ${msShort(to)}`;
}

function msShort(ms: number): string {
  return ms >= 1_000 ? `${ms / 1_000} s` : `${ms} ms`;
}

function middle(values: readonly number[]): number | undefined {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
}

function largest(values: readonly number[]): number | undefined {
  return values.length === 0 ? undefined : Math.max(...values);
}
