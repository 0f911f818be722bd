/**
 * An array as PostgreSQL reads it from text (manual 8.15.6): every element quoted, `\` and `"` escaped. One string in place
 * of an array spares the driver its per-element type inference, which fails for bigints.
 */
export function arrayLiteral(values: readonly (string | number)[]): string {
  return `{${values.map(quoted).join(',')}}`;
}

function quoted(value: string | number): string {
  return typeof value === 'number' ? String(value) : `"${value.replaceAll(/[\\"]/g, '\\$&')}"`;
}
