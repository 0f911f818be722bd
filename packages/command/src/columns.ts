/** The width of help texts. */
export const helpColumns = 80;

/** Wraps a text into lines of a help text that begin after `indentation` spaces. */
export function wrapped(text: string, indentation = 0): string {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const line = lines.at(-1);
    if (line !== undefined && indentation + line.length + 1 + word.length <= helpColumns)
      lines.push(`${lines.pop()} ${word}`);
    else lines.push(word);
  }
  return lines.map((line) => ' '.repeat(indentation) + line).join('\n');
}

/**
 * Returns an entry of a help text: a name, and its meaning wrapped in a column that begins after `indentation` spaces.
 * A name that is too long for its column gets a separate line.
 */
export function nameAndMeaning(name: string, meaning: string, indentation: number): string {
  const column = wrapped(meaning, indentation);
  const start = `  ${name}`;
  return start.length + 2 > indentation ? `${start}\n${column}` : start + column.slice(start.length);
}
