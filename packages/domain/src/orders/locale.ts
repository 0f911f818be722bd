/**
 * Returns a well-formed language tag in the recommended case (RFC 5646, 2.1.1), such as `zh-Hans-CN`. Replaces `_`,
 * which POSIX, Java and many shop systems use, with a hyphen.
 */
export function canonicalLocale(tag: string): string {
  let isLanguage = true;
  let isAfterSingleton = false;
  const subtags = tag.split(/[-_]/).map((subtag) => {
    const lower = subtag.toLowerCase();
    const keepsLowerCase = isLanguage || isAfterSingleton;
    isLanguage = false;
    isAfterSingleton ||= subtag.length === 1;
    if (keepsLowerCase || !/^[a-z]+$/.test(lower)) return lower;
    if (lower.length === 2) return lower.toUpperCase();
    return lower.length === 4 ? lower.charAt(0).toUpperCase() + lower.slice(1) : lower;
  });
  return subtags.join('-');
}
