/**
 * Texts that databases, drivers and encodings are known to corrupt. Each is valid in every field that allows any
 * visible text of 100 characters.
 */
export const naughtyTexts = {
  'emoji with joiners and skin tones': '👩🏽‍🚀👨‍👩‍👧‍👦🏴󠁧󠁢󠁳󠁣󠁴󠁿🇳🇱1️⃣',
  'right-to-left text with marks': '\u202bשלום \u200fمرحبا\u202c \u2066abc\u2069\u200e',
  quotes: `'single' "double" \`back\` ''twice'' ""twice"" ‘’ “” $$dollar$$`,
  backslashes: String.raw`\ \\ \n \' \" \u0000 \x00 E'\\' C:\temp\ `,
  'combining characters': 'e\u0301 é Z̷̛̹a̶l̵g̸o̸ \u1112\u1161\u11ab 한',
  'astral code points': '𝒜𠜎\u{10ffff}\u{1f600}\u{e0001}',
  noncharacters: '\ufeffx\ufffd\uffff\ufffe\ufdd0',
  'invisible characters and unusual line breaks': '\u200bx\u200d\u2060\u00ad\u2028\u2029\u061c',
  'leading and trailing white space': '  \u00a0 padded \u3000  ',
  'SQL and placeholders': `'; DROP TABLE orders; -- /* $1 ? :name %s %(x)s {0} \${x} */`,
  'array and record literals': '{NULL,"a",b} (1,"x") [1,2) {}',
  'the word NULL': 'NULL',
  'JSON and markup': '{"a":"\\u0000"}<b>&amp;&#0;]]>',
  'one comma': ',',
} as const;
