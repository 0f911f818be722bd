/** Numbers that look random and are the same for the same seed and place, whatever was drawn for other places. */
export interface Seeded {
  /** From 0 to below 1. */
  fraction(): number;
  /** A whole number from 0 to below `end`. */
  below(end: number): number;
  /** One of a list that is not empty. */
  pick<Item>(items: readonly [Item, ...Item[]]): Item;
}

/** mulberry32, its state mixed from seed and place with odd constants of MurmurHash3, so that neighbours share nothing. */
export function seededAt(seed: number, place: number): Seeded {
  let state = (Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(place + 1, 0xc2b2ae35)) >>> 0;
  const fraction = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (end: number) => Math.floor(fraction() * end);
  return { fraction, below, pick: (items) => items[below(items.length)] ?? items[0] };
}
