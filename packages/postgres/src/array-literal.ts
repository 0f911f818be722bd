/**
 * An array of one value an item as PostgreSQL reads it from text (manual 8.15.6): every value quoted, `\` and `"` escaped. One
 * string in place of an array spares the driver its per-element type inference, which fails for bigints.
 */
export function arrayLiteral<Item>(items: readonly Item[], pick: (item: Item) => string | number): string {
  if (items.length === 0) return '{}';
  return `{"${items.map((item) => escaped(pick(item))).join('","')}"}`;
}

const special = /[\\"]/g;

function escaped(value: string | number): string | number {
  // Most values hold neither: the search is cheaper than a replacement that changes nothing.
  if (typeof value === 'number' || !(value.includes('"') || value.includes('\\'))) return value;
  return value.replace(special, '\\$&');
}
