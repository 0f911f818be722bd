/** Returns the pauses of repeated work, by key. After each failure in a row, the pause doubles up to a maximum. */
export function createPauses({ msMin, msMax }: { readonly msMin: number; readonly msMax: number }) {
  const pauses = new Map<string, { readonly untilMs: number; readonly ms: number }>();
  return {
    /** Returns the keys of the work that pauses now. */
    paused: () => new Set([...pauses].flatMap(([key, { untilMs }]) => (untilMs > Date.now() ? [key] : []))),

    /** Pauses after a failure. */
    fail(key: string): void {
      const ms = Math.min((pauses.get(key)?.ms ?? msMin / 2) * 2, msMax);
      pauses.set(key, { untilMs: Date.now() + ms, ms });
    },

    /** Pauses after a success, for a number of milliseconds. */
    succeed(key: string, ms = 0): void {
      if (ms === 0) pauses.delete(key);
      else pauses.set(key, { untilMs: Date.now() + ms, ms: msMin / 2 });
    },

    /** Forgets the pauses of all other keys. */
    keep(keys: ReadonlySet<string>): void {
      for (const key of pauses.keys()) if (!keys.has(key)) pauses.delete(key);
    },
  };
}
