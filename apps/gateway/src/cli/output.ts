export const secretNote = "The secret is shown only now. Store it where only the client's backend can read it.";

export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Starts a list: of columns with these names and widths, or with `json` of one object a line. Returns what prints a row. */
export function startList(
  columns: Readonly<Record<string, number>>,
  json: boolean | undefined,
  print: (line: string) => void,
): (facts: object, ...cells: readonly string[]) => void {
  const widths = Object.values(columns);
  const row = (cells: readonly string[]) => cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ');
  if (!json) print(row(Object.keys(columns)));
  return (facts, ...cells) => print(json ? JSON.stringify(facts) : row(cells));
}

/** A time to the second, as `2027-01-31 12:00:00 UTC`. */
export function readable(time: Date): string {
  return `${time.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}
