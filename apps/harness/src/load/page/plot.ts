import { escaped } from './escape.ts';

/** The size of every drawing, in its own units, and the room around the area that data is drawn in. */
const drawing = { width: 960, height: 260, left: 64, right: 16, top: 12, bottom: 32 } as const;

const innerWidth = drawing.width - drawing.left - drawing.right;
const innerHeight = drawing.height - drawing.top - drawing.bottom;

/** A place from 0 to 1, from the left and from the bottom, in the drawing's units. */
export function across(part: number): number {
  return round(drawing.left + clamp(part) * innerWidth);
}

export function up(part: number): number {
  return round(drawing.top + (1 - clamp(part)) * innerHeight);
}

export interface Tick {
  /** From 0 to 1. */
  readonly at: number;
  readonly label: string;
}

/** An SVG drawing with its axes; `told` is read out in its place. */
export function plot(
  told: string,
  ticks: { readonly x: readonly Tick[]; readonly y: readonly Tick[] },
  marks: string,
): string {
  const lines = ticks.y.map(({ at }) => `<path class="grid" d="M${across(0)} ${up(at)}H${across(1)}"/>`);
  const left = ticks.y.map(
    ({ at, label }) => `<text class="y" x="${drawing.left - 8}" y="${round(up(at) + 4)}">${escaped(label)}</text>`,
  );
  const below = ticks.x.map(
    ({ at, label }) => `<text class="x" x="${across(at)}" y="${drawing.height - 10}">${escaped(label)}</text>`,
  );
  const box = `0 0 ${drawing.width} ${drawing.height}`;
  return `<svg viewBox="${box}" role="img" aria-label="${escaped(told)}">${[...lines, marks, ...left, ...below].join('')}</svg>`;
}

/** A line through points; a point without a value breaks it, and one between two such is a dash. */
export function line(kind: string, points: readonly { readonly x: number; readonly y: number | undefined }[]): string {
  let path = '';
  let drawn = false;
  for (const { x, y } of points) {
    // It begins with a dash, as a point alone would not be seen.
    if (y !== undefined) path += drawn ? `L${across(x)} ${up(y)}` : `M${across(x)} ${up(y)}m-3 0h6`;
    drawn = y !== undefined;
  }
  return path === '' ? '' : `<path class="line ${kind}" d="${path}"/>`;
}

/** Round numbers from 0 to at least `most`, four or five of them. */
export function roundTicks(most: number): number[] {
  const rough = Math.max(most, 1e-9) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough) ?? 10) * power;
  return Array.from({ length: Math.ceil(most / step - 1e-9) + 1 }, (_, index) => Number((index * step).toPrecision(6)));
}

/** A latency's place on a logarithmic axis between two others. */
export function logPlace(ms: number, leastMs: number, mostMs: number): number {
  return clamp(Math.log(ms / leastMs) / Math.log(mostMs / leastMs));
}

function clamp(part: number): number {
  return Math.min(1, Math.max(0, part));
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
