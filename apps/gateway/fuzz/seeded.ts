/** A source of numbers that a seed repeats: mulberry32, 32 bits of state, of even quality, and no more is needed here. */
export interface Seeded {
  /** A whole number from 0 to below `end`. */
  below(end: number): number;
  pick<Item>(items: readonly Item[]): Item;
}

export function seeded(seed: number): Seeded {
  let state = seed >>> 0;
  const below = (end: number): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * end);
  };
  return {
    below,
    pick(items) {
      const item = items[below(items.length)];
      if (item === undefined) throw new RangeError('nothing to pick from');
      return item;
    },
  };
}
