/**
 * An array of one value an item as PostgreSQL reads it from text (manual 8.15.6): every text quoted, `\` and `"` escaped. One
 * string in place of an array spares the driver its per-element type inference, which fails for bigints.
 */
export function arrayLiteral<Item>(items: readonly Item[], pick: (item: Item) => string | number): string {
  let literal = '{';
  for (const item of items) {
    const value = pick(item);
    if (literal.length > 1) literal += ',';
    literal += typeof value === 'number' ? value : quoted(value);
  }
  return `${literal}}`;
}

const escaped = /[\\"]/g;

function quoted(value: string): string {
  // Most values hold neither: the search is cheaper than a replacement that changes nothing.
  return value.includes('"') || value.includes('\\') ? `"${value.replace(escaped, '\\$&')}"` : `"${value}"`;
}
