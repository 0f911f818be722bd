// Without listeners, a failed write would end a command before it has stopped what it started, such as PostgreSQL.
process.stderr.on('error', () => {});
process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
  // The reader of a pipe, such as `head`, needs no more lines.
  if (code === 'EPIPE' || process.exitCode === 1) return;
  process.exitCode = 1;
  process.stderr.write(`The output could not be written: ${message}\n`);
});

export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/**
 * Starts a list, which is printed in columns with these names and widths or, with `json`, as one object per line. If
 * there was no row, `end` prints its sentence instead of the names of the columns, except with `json`.
 */
export function startList(
  columns: Readonly<Record<string, number>>,
  json: boolean | undefined,
  print: (line: string) => void,
): {
  readonly printRow: (fields: object, ...cells: readonly string[]) => void;
  readonly end: (sentence: string) => void;
} {
  let isEmpty = true;
  const widths = Object.values(columns);
  const row = (cells: readonly string[]) =>
    cells.map((cell, column) => withoutControls(cell).padEnd(widths[column] ?? 0)).join('  ');
  return {
    printRow(fields, ...cells) {
      if (isEmpty && !json) print(row(Object.keys(columns)));
      isEmpty = false;
      print(json ? snakeCased(fields) : row(cells));
    },
    end(sentence) {
      if (isEmpty && !json) print(sentence);
    },
  };
}

/**
 * Replaces control characters: others write some texts, such as a payer's name, which could print lines of their own or
 * change what the terminal shows.
 */
const withoutControls = (text: string): string => text.replaceAll(/\p{Cc}/gu, '\uFFFD');

/** Formats a time, to the second, as `2027-01-31 12:00:00 UTC`. */
export function displayTime(time: Date): string {
  return `${time.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

/** Formats an object as JSON. The names of all members are in snake case, like those of the API. */
export function snakeCased(fields: object): string {
  return JSON.stringify(fields, (_name, value: unknown) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
    const members = Object.entries(value).map(([name, member]) => [
      name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      member,
    ]);
    return Object.fromEntries(members);
  });
}
