/** The width of help texts. */
export const helpColumns = 80;

/**
 * Returns an entry of a help text: a name, and its meaning wrapped in a column that begins after `indentation` spaces.
 * A name that is too long for its column gets a separate line.
 */
export function nameAndMeaning(name: string, meaning: string, indentation: number): string {
  const lines: string[] = [];
  for (const word of meaning.split(' ')) {
    const line = lines.at(-1);
    if (line !== undefined && indentation + line.length + 1 + word.length <= helpColumns)
      lines.push(`${lines.pop()} ${word}`);
    else lines.push(word);
  }
  const column = lines.map((line) => ' '.repeat(indentation) + line).join('\n');
  const start = `  ${name}`;
  return start.length + 2 > indentation ? `${start}\n${column}` : start + column.slice(start.length);
}
