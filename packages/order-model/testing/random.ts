/** Creates a generator of random values that repeat for the same seed (mulberry32). */
export function createRandom(seed: number) {
  let state = seed;
  const fraction = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (limit: number) => Math.floor(fraction() * limit);
  return { fraction, below, pick: <Value>(values: readonly Value[]) => values[below(values.length)] as Value };
}

export type Random = ReturnType<typeof createRandom>;
