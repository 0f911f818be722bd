/** JSON values that RFC 8259 accepts: numbers, strings, literals, arrays and objects in all their forms. */
export const acceptedValues: readonly string[] = [
  // Numbers
  ...['0', '-0', '1', '-1', '12', '1.0', '0.1', '-0.1', '123.456', '1e1', '1E1', '1e+1', '1e-1', '0e0', '0e+1', '0e-1'],
  ...['-0.0', '-0e5', '1.5e10', '1.5E-10', '20e1', '123e65', '0.4e66', '1e308', '1e309', '-1e309', '1e-400', '1e9999'],
  ...['9007199254740991', '9007199254740993', '-9007199254740993', '123456789012345678901234567890'],
  ...['0.1000000000000000055', `${'9'.repeat(400)}`, `0.${'0'.repeat(400)}1`, `1e${'0'.repeat(60)}1`],
  ...[`-${'1'.repeat(300)}.${'2'.repeat(300)}`],
  // Strings
  ...['""', '"a"', '" "', '"\u00e9"', '"\u{1f600}"', '"\u2028"', '"\u2029"', '"\u007f"', '"\u0080"', '"\ufeff"'],
  ...['"\uffff"', '"\\""', '"\\\\"', '"\\/"', '"\\b"', '"\\f"', '"\\n"', '"\\r"', '"\\t"', '"\\u0000"', '"\\u001f"'],
  ...['"\\u0041"', '"\\u00e9"', '"\\u00E9"', '"\\ud83d\\ude00"', '"\\uD83D\\uDE00"', '"\\ud800"', '"\\udfff"'],
  ...['"\\udc00\\ud800"', '"\\ud83d"', '"\\ud83dx"', '"\\ud83d\\u0041"', '"\\uffff"', '"\\ufeff"', '"\\u2028"'],
  ...['"\\\\u0000"', '"\\\\\\""', '"//"', '"/* no comment */"', '"#"', '"{}"', '"[]"', '"null"'],
  ...['"{\\"a\\":1,\\"a\\":2}"', '"a\\u0000b"', '"\\u005c"', '"\\u0022"', '"\\u007f"', '"\u0300"', '"e\u0301"'],
  ...['"\u202e"', '"\u200b"', '"\ud7ff"', '"\ue000"', '"\u{10ffff}"', `"${'a'.repeat(5_000)}"`],
  ...[`"${'\\u0061'.repeat(500)}"`, `"${'\\\\'.repeat(500)}"`, `"${'\u{1f4b6}'.repeat(500)}"`],
  // Literals
  ...['true', 'false', 'null'],
  // Arrays and objects
  ...['[]', '[ ]', '[1]', '[1,2]', '[ 1 , 2 ]', '[[]]', '[[],[]]', '[null]', '[[[[[]]]]]', '[{}]'],
  ...['["a",1,null,true,{}]', '{}', '{ }', '{"a":1}', '{"a":{}}', '{"a":[]}', '{"":1}', '{"a":1,"b":2}'],
  ...['{"a":{"a":{"a":1}}}', '{"\\u0061":1}', '{"a b":1}', '{"a":1,"A":2}', '{"a":1,"\u0430":2}'],
  ...['{"\u00e9":1,"e\u0301":2}', '{"__proto__":1}', '{"__proto__":{}}', '{"constructor":{"prototype":{"x":1}}}'],
  ...['{"toString":1}', '{"hasOwnProperty":1}', '{"length":-1}', '{"a":{"b":1},"c":{"b":1}}'],
  ...[`${'['.repeat(500)}${']'.repeat(500)}`, `${'{"a":'.repeat(500)}1${'}'.repeat(500)}`, `[${'0,'.repeat(2_000)}0]`],
  // White space between tokens
  ...['\t1', '\n1', '\r1', ' 1', '1 \t\n\r ', '[\n1\n,\n2\n]', '{\t"a"\t:\t1\t}'],
];

/** Member values that the gateway rejects: text that RFC 8259 does not allow, and duplicate keys. */
export const rejectedValues: readonly string[] = [
  // Numbers
  ...['+1', '01', '-01', '00', '00.5', '.5', '-.5', '5.', '-5.', '1e', '1E', '1e+', '1e-', '1.e1', '.e1', '1.2.3'],
  ...['1e1e1', '1e1.5', '0x10', '0b1', '0o7', '1_000', '1,000', '-', '--1', '+-1', '- 1', '1 000', 'NaN', '-NaN'],
  ...['Infinity', '-Infinity', 'Inf', '1a', '1n', '1f', '\u0661', '\uff11', '1\u00a0', '0e', '0e+', '1\u0000', '1 2'],
  ...['\u22121', '$1', '1%', '1e\u0661'],
  // Strings
  ...["'a'", '"', '"a', 'a"', '"a""b"', '"a" "b"', '"\n"', '"\r"', '"\t"', '"\u0000"', '"\u001f"', '"\u0001"'],
  ...['"a\nb"', '"\\"', '"\\x41"', '"\\a"', '"\\0"', '"\\v"', "'\\''", '"\\u"', '"\\u1"', '"\\u12"', '"\\u123"'],
  ...['"\\u12g4"', '"\\uu0041"', '"\\U0041"', '"\\ "', '"\\\u00e9"', '"\\u 041"', '"\\u+041"', '"\\u{41}"'],
  ...['"\\ud83d\\"', '"\\ud83d\\u"', '"\\ud83d\\u1"', '`a`', '\u201ca\u201d', '\\u0022a\\u0022', 'a', '"a\\'],
  ...['"\\\\\\"', 'u"a"', '"a"b', '"a"\u0000', '"a\''],
  // Literals
  ...['True', 'TRUE', 'tru', 'truee', 'False', 'nul', 'nulll', 'Null', 'None', 'undefined', 'nil', 'yes', 't', '*'],
  ...['?', '@', '&'],
  // Arrays
  ...['[', ']', '[1', '1]', '[1,', '[1,]', '[,1]', '[,]', '[1,,2]', '[1 2]', '[1;2]', '[1:2]', '["a":1]', '[[]', '[]]'],
  ...['[1}', '[a]', '["a', '["a"', '[\u0000]', '[1\u000b]', '[1\u000c]', '[-]', '[*]', '[""],', '[1],[2]', '[1]x'],
  ...['[x', '[ ,1]', '[.]'],
  // Objects
  ...['{', '}', '{"a"', '{"a":', '{"a":1', '{"a":1,', '{"a":1,}', '{,"a":1}', '{"a":1,,"b":2}', '{"a" 1}', '{"a"::1}'],
  ...['{"a":1:2}', '{"a",1}', '{"a"=1}', '{"a"=>1}', "{'a':1}", '{a:1}', '{1:1}', '{null:1}', '{[]:1}', '{{}:1}'],
  ...['{"a":1 "b":2}', '{"a":1;"b":2}', '{"a":1]', '{"a":}', '{:1}', '{"a"}', '{"a":1}}', '{"a":1}{}', '{"a":1}x'],
  ...['{"a":1}//', '{"a":1}#', '{"a":a}', '{true:1}', '{ }}'],
  // Comments, white space and other text that is not JSON
  ...['/* a */ 1', '1 // a', '1 /* a */', '# a', '\u00a01', '\u20281', '\ufeff1', '\u30001', '\u000b1', '\u000c1'],
  ...['1\u0085', '\u200b1', '', '<a/>', '{"a":1}{"b":2}', '1;', '=1', '(1)', 'new Date()', '() => 1', '--- 1'],
  ...['%7B%7D'],
  // Duplicate keys, which this gateway rejects
  ...['{"a":1,"a":1}', '{"a":1,"\\u0061":2}', '[{"a":1,"a":2}]', '{"x":{"y":[{"k":1,"k":2}]}}', '{"":1,"":2}'],
  ...['{"\\u0000":1,"\\u0000":2}', '{"__proto__":1,"__proto__":2}', '{"\\/":1,"/":2}'],
  ...['{"\\ud83d\\ude00":1,"\u{1f600}":2}', '{"a":1,"b":{"c":1},"a":{"c":1}}'],
];

/** Bodies that are not a single JSON object in UTF-8. */
export const rejectedDocuments: readonly (readonly [name: string, body: Uint8Array])[] = [
  ...[
    ...['', ' ', '\n', 'null', 'true', '1', '"a"', '[]', '[{}]', '{}{}', '{} {}', '{},', ',{}', '{}]', '[{}', '({})'],
    ...['{}\u0000', '\u0000{}'],
  ].map((text) => [`the text ${JSON.stringify(text)}`, Buffer.from(text)] as const),
  ...[
    ...['{"a":1', '{"a"', '{"a":"', '{"a":"\\', '{"a":"\\u00', '{"a":[', '{"a":{', '{"a":-', '{"a":1e', '{"a":tr'],
    ...['{"a":1,"'],
  ].map((text) => [`the truncated document ${text}`, Buffer.from(text)] as const),
  ['a UTF-8 byte-order mark', Buffer.from('\ufeff{}')],
  ['two byte-order marks', Buffer.from('\ufeff\ufeff{}')],
  ['UTF-16, little endian', Buffer.from('{"a":1}', 'utf16le')],
  ['UTF-16 with a byte-order mark', Buffer.concat([Buffer.of(0xff, 0xfe), Buffer.from('{"a":1}', 'utf16le')])],
  ['UTF-32', Buffer.of(0x7b, 0, 0, 0, 0x7d, 0, 0, 0)],
  ['Latin-1', Buffer.from('{"a":"\u00e9"}', 'latin1')],
  ['a lone continuation byte', bytesInText(0x80)],
  ['a truncated two-byte character', bytesInText(0xc3)],
  ['a truncated three-byte character', bytesInText(0xe2, 0x82)],
  ['a truncated four-byte character', bytesInText(0xf0, 0x9f, 0x98)],
  ['an overlong slash', bytesInText(0xc0, 0xaf)],
  ['an overlong NUL', bytesInText(0xc0, 0x80)],
  ['an overlong euro sign', bytesInText(0xf0, 0x82, 0x82, 0xac)],
  ['a surrogate in UTF-8', bytesInText(0xed, 0xa0, 0x80)],
  ['a surrogate pair in UTF-8', bytesInText(0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80)],
  ['a code point above U+10FFFF', bytesInText(0xf4, 0x90, 0x80, 0x80)],
  ['a byte that never occurs in UTF-8', bytesInText(0xff)],
  ['an invalid byte in a key', Buffer.concat([Buffer.from('{"'), Buffer.of(0xfe), Buffer.from('":1}')])],
  ['an invalid byte between tokens', Buffer.concat([Buffer.from('{'), Buffer.of(0xa0), Buffer.from('}')])],
  ['60,000 open brackets', Buffer.from('['.repeat(60_000))],
  ['12,000 nested objects, never closed', Buffer.from('{"a":'.repeat(12_000))],
  ['gzip', Buffer.of(0x1f, 0x8b, 0x08, 0, 0, 0, 0, 0, 0, 3, 0xab, 0xae, 0x05, 0, 0x43, 0xbf, 0xa6, 0xa3, 2, 0, 0, 0)],
];

function bytesInText(...bytes: number[]): Uint8Array {
  return Buffer.concat([Buffer.from('{"a":"'), Buffer.of(...bytes), Buffer.from('"}')]);
}
