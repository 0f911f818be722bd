/** Formats a latency in milliseconds, or in seconds from ten seconds on. */
export function formatMs(ms: number | undefined): string {
  if (ms === undefined) return '-';
  if (ms >= 10_000) return `${(ms / 1_000).toFixed(1)} s`;
  return `${ms >= 100 ? ms.toFixed(0) : ms >= 10 ? ms.toFixed(1) : ms.toFixed(2)} ms`;
}

/** Formats a duration. A duration below ten seconds has at most two significant digits. */
export function formatSeconds(seconds: number): string {
  if (seconds < 10) return `${Number(seconds.toPrecision(2))} s`;
  const rounded = Math.round(seconds);
  if (rounded < 60) return `${rounded} s`;
  return `${Math.floor(rounded / 60)} min ${String(rounded % 60).padStart(2, '0')} s`;
}

/** Formats a share as a percentage with two decimals. A positive share that is too small for them is not shown as 0. */
export function formatShare(share: number): string {
  if (share === 0) return '0 %';
  return share < 0.0001 ? '< 0.01 %' : `${(share * 100).toFixed(2)} %`;
}

export { columns } from '@order-gateway/order-model/report';
