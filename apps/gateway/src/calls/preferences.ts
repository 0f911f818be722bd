/**
 * Matches one preference: its name, its value as a token or in quotes, and its parameters, which no supported
 * preference has. Every character can begin only one part, so matching takes linear time.
 */
const preference =
  /\s*([!#$%&'*+.^_`|~\w-]+)\s*(?:=\s*(?:([^\s",;]*)|"((?:[^"\\]|\\.)*)")\s*)?(?:;(?:[^",]|"(?:[^"\\]|\\.)*")*)?(?:,|$)/y;

/**
 * Reads the header Prefer (RFC 7240, 2). Returns the values, keyed by the lower-case names of the preferences. If a
 * preference is given twice, the first one counts. Everything after a malformed part is ignored.
 */
export function readPreferences(prefer: string): ReadonlyMap<string, string> {
  const values = new Map<string, string>();
  preference.lastIndex = 0;
  for (let found = preference.exec(prefer); found?.[0]; found = preference.exec(prefer)) {
    const [, name = '', token, quoted] = found;
    values.getOrInsert(name.toLowerCase(), token ?? quoted?.replaceAll(/\\(.)/g, '$1') ?? '');
  }
  return values;
}
