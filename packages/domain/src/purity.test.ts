import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

/**
 * The domain has no clock, randomness, environment or I/O of its own. This looks for all of them in its source text. It stops
 * what gets in by habit or by mistake; it does not stop who sets out to deceive it.
 */
const cryptoNames = ['createHmac', 'hash', 'timingSafeEqual'];

const forbiddenNames = new Set([
  ...['process', 'require', 'module', 'globalThis', 'global', 'eval', 'Function'],
  ...['fetch', 'XMLHttpRequest', 'WebSocket', 'navigator', 'console', 'performance', 'crypto', 'Temporal', 'Intl'],
  ...['setTimeout', 'setInterval', 'setImmediate', 'queueMicrotask'],
]);

/** What is impure in a source text: one line for each finding. `files` are the names that it may import. */
function impuritiesOf(source: string, files: readonly string[]): string[] {
  const tokens = tokensOf(source);
  const found: string[] = [];
  for (const [index, token] of tokens.entries()) {
    const before = tokens[index - 1];
    const after = tokens.slice(index + 1, index + 4);
    if (token === '\\') found.push('an escape outside of a text');
    if (token === 'import' && after[0] === '(') found.push('a dynamic import');
    if (token === 'import' && after[0] === '.') found.push('import.meta');
    if ((before === 'from' || before === 'import') && token.startsWith("'")) {
      const specifier = token.slice(1);
      if (specifier === 'node:crypto') found.push(...cryptoImpurities(tokens.slice(0, index)));
      else if (!files.includes(specifier.replace('./', ''))) found.push(`imports ${specifier}`);
      else if (!specifier.startsWith('./')) found.push(`imports ${specifier}`);
    }
    // A property of that name belongs to some object at hand, not to the surroundings.
    if (before === '.' || before === '?.') continue;
    if (forbiddenNames.has(token)) found.push(token);
    if (token === 'Math' && !(after[0] === '.' && after[1] !== 'random')) found.push('Math.random');
    if (token === 'Date' && !readsNoClock(before, after)) found.push('the clock of Date');
  }
  return found;
}

/** `new Date(moment)`, `Date.parse(…)` and `Date.UTC(…)` work on what they are given. */
function readsNoClock(before: string | undefined, after: readonly string[]): boolean {
  if (before === 'new') return after[0] === '(' && after[1] !== ')' && after[1] !== '...';
  return after[0] === '.' && (after[1] === 'parse' || after[1] === 'UTC');
}

/** Judges `import { a, b as c } from` by the tokens up to the module's name. */
function cryptoImpurities(tokensBefore: readonly string[]): string[] {
  const statement = tokensBefore.slice(tokensBefore.findLastIndex((token) => token === 'import' || token === 'export'));
  const [keyword, open, ...rest] = statement;
  if (keyword !== 'import' || open !== '{' || rest.at(-2) !== '}') return ['node:crypto as a whole'];
  const names = rest.slice(0, -2).filter((token, index) => token !== ',' && token !== 'as' && rest[index - 1] !== 'as');
  return names.filter((name) => !cryptoNames.includes(name)).map((name) => `${name} of node:crypto`);
}

const tokenForms =
  /(?<blank>\s+|\/\/[^\n]*|\/\*[\s\S]*?\*\/)|(?<text>'(?:\\[\s\S]|[^'\\\n])*'|"(?:\\[\s\S]|[^"\\\n])*")|(?<word>[\p{ID_Start}$_#][\p{ID_Continue}$]*|\d[\w.]*)|(?<sign>\.{3}|\?\.(?!\d)|[\s\S])/uy;

const patternForm = /\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\/[a-z]*/uy;

/** After these words a slash opens a pattern; after another word, a number or a closing bracket it divides. */
const wordsBeforePattern = new Set(['return', 'typeof', 'case', 'in', 'of', 'void', 'delete', 'else', 'do', 'throw']);

/** The words and signs of a source text, without its comments and patterns; a quoted text as `'` and its content. */
function tokensOf(source: string): string[] {
  const tokens: string[] = [];
  // For each template that is open: how many braces are open in its current `${…}`.
  const openBraces: number[] = [];
  let index = 0;

  /** Steps over the text of a template, up to its end or to the next `${`. */
  const skipTemplateText = () => {
    for (; index < source.length; index += 1) {
      if (source[index] === '\\') index += 1;
      else if (source[index] === '`') break;
      else if (source.startsWith('${', index)) {
        openBraces.push(0);
        index += 2;
        return;
      }
    }
    index += 1;
  };

  while (index < source.length) {
    const character = source[index];
    if (character === '`') {
      index += 1;
      tokens.push('`');
      skipTemplateText();
      continue;
    }
    const braces = openBraces.at(-1);
    if (character === '}' && braces === 0) {
      openBraces.pop();
      index += 1;
      skipTemplateText();
      continue;
    }
    if (braces !== undefined && (character === '{' || character === '}')) {
      openBraces[openBraces.length - 1] = braces + (character === '{' ? 1 : -1);
    }
    const opensComment = source.startsWith('//', index) || source.startsWith('/*', index);
    if (character === '/' && !opensComment && mayOpenPattern(tokens.at(-1))) {
      patternForm.lastIndex = index;
      const pattern = patternForm.exec(source);
      if (pattern === null) throw new Error(`a pattern without end at ${index}`);
      index = patternForm.lastIndex;
      tokens.push('`');
      continue;
    }
    tokenForms.lastIndex = index;
    const { groups = {} } = tokenForms.exec(source) ?? {};
    index = tokenForms.lastIndex;
    if (groups.text !== undefined) tokens.push(`'${groups.text.slice(1, -1)}`);
    else if (groups.blank === undefined) tokens.push(groups.word ?? groups.sign ?? '');
  }
  return tokens;
}

function mayOpenPattern(before: string | undefined): boolean {
  if (before === undefined || wordsBeforePattern.has(before)) return true;
  return !/^[\p{ID_Start}$_#\d)\]'`]/u.test(before);
}

const files = readdirSync(import.meta.dirname).filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'));

describe('the domain is pure', () => {
  it('has its source files beside this test, in no folder below', () => {
    expect(files).toContain('parse-order.ts');
    expect(readdirSync(import.meta.dirname, { withFileTypes: true }).filter((entry) => !entry.isFile())).toStrictEqual(
      [],
    );
  });

  it.each(files)('%s has no clock, randomness, environment or I/O of its own', (file) => {
    expect(impuritiesOf(readFileSync(join(import.meta.dirname, file), 'utf8'), files)).toStrictEqual([]);
  });
});

describe('the check', () => {
  const known = ['money.ts', 'order.ts'];

  it.each([
    ["import { readFileSync } from 'node:fs';", 'imports node:fs'],
    ['import { readFileSync } from "node:fs";', 'imports node:fs'],
    ["import 'node:fs';", 'imports node:fs'],
    ["import type { Pool } from 'pg';", 'imports pg'],
    ["import * as schema from '@gateway/postgres/schema';", 'imports @gateway/postgres/schema'],
    ["import { x } from '../testing/order-fields.ts';", 'imports ../testing/order-fields.ts'],
    ["import { x } from './money.test.ts';", 'imports ./money.test.ts'],
    ["import { x } from './money';", 'imports ./money'],
    ["import x from 'money.ts';", 'imports money.ts'],
    ["export { x } from 'node:os';", 'imports node:os'],
    ["export * from 'node:os';", 'imports node:os'],
    ["import {\n  type A, // it's fine\n  b,\n} from 'node:os';", 'imports node:os'],
    ["import { randomBytes } from 'node:crypto';", 'randomBytes of node:crypto'],
    ["import { hash, randomUUID as id } from 'node:crypto';", 'randomUUID of node:crypto'],
    ["import { getRandomValues as hash } from 'node:crypto';", 'getRandomValues of node:crypto'],
    ["import nodeCrypto from 'node:crypto';", 'node:crypto as a whole'],
    ["import * as nodeCrypto from 'node:crypto';", 'node:crypto as a whole'],
    ["import 'node:crypto';", 'node:crypto as a whole'],
    ["export { randomBytes } from 'node:crypto';", 'node:crypto as a whole'],
    ["const fs = await import('node:fs');", 'a dynamic import'],
    ["const fs = require('node:fs');", 'require'],
    ['const here = import.meta.dirname;', 'import.meta'],
    ['const url = process.env.BASE_URL;', 'process'],
    [`const url = \`\${base}/\${process.env.PATH}\`;`, 'process'],
    [`const url = \`\${{ a: \`\${1}\` }.a} \${process.env.PATH}\`;`, 'process'],
    ['const env = globalThis.process;', 'globalThis'],
    ['const now = Date.now();', 'the clock of Date'],
    ['const now = Date . now ( );', 'the clock of Date'],
    ['const now = new Date();', 'the clock of Date'],
    ['const now = new Date;', 'the clock of Date'],
    ['const now = new Date(/* now */);', 'the clock of Date'],
    ['const now = Date();', 'the clock of Date'],
    ["const now = Date['now']();", 'the clock of Date'],
    ['const { now } = Date;', 'the clock of Date'],
    ['const now = performance.now();', 'performance'],
    ['const now = Temporal.Now.instant();', 'Temporal'],
    ['const dice = Math.random();', 'Math.random'],
    ["const dice = Math['random']();", 'Math.random'],
    ['const { random } = Math;', 'Math.random'],
    ['crypto.getRandomValues(bytes);', 'crypto'],
    ['const id = crypto.randomUUID();', 'crypto'],
    ["await fetch('https://example.com');", 'fetch'],
    ['setTimeout(() => {}, 10);', 'setTimeout'],
    ['setInterval(tick, 10);', 'setInterval'],
    ["console.log('x');", 'console'],
    ["new Intl.NumberFormat('en');", 'Intl'],
    ["eval('1');", 'eval'],
    ['\\u0070rocess.exit();', 'an escape outside of a text'],
    ["const text = 'it\\'s'; process.exit();", 'process'],
    ['const pattern = /[\'"`]/; process.exit();', 'process'],
    ['const pattern = /[/]\\//g.test(x); fetch(x);', 'fetch'],
    ['const half = size / 2; fetch(x); const third = size / 3;', 'fetch'],
    ['const half = f(size) / 2 + sizes[0] / 2; fetch(x / 1);', 'fetch'],
    ['// nothing here\nfetch(x);', 'fetch'],
    ['/* nothing here */ fetch(x); /* or here */', 'fetch'],
    ["const url = 'https://example.com'; fetch(url);", 'fetch'],
    ['const url = `https://example.com/*`; fetch(url); /* */', 'fetch'],
  ])('finds the impurity of %s', (source, impurity) => {
    expect(impuritiesOf(source, known)).toContain(impurity);
  });

  it.each([
    "import { createHmac, hash, timingSafeEqual } from 'node:crypto';",
    "import { hash as digest } from 'node:crypto';",
    "import { type Order, openOrder } from './order.ts';",
    "import type { Order } from './order.ts';",
    "export { openOrder } from './order.ts';",
    'const iso = new Date(createdAtMs).toISOString();',
    'const moment = Date.parse(text) + Date.UTC(2026, 1);',
    'const most = Math.max(1, 2);',
    'const bytes = Buffer.from(text);',
    'order.process(); order?.fetch();',
    '// process.env, Date.now() and fetch() are not used here',
    '/* import { x } from "node:fs"; */',
    "const text = 'process.env';",
    "const text = 'it\\'s process.env';",
    'const text = "Date.now()";',
    `const text = \`console.log() \\\` \\\${process.env} \${order.id} fetch(x)\`;`,
    'const pattern = /process|fetch\\/console/u;',
    'const pattern = /[/"]fetch/.test(x);',
    'const processed = 1; const refetch = 2;',
  ])('finds nothing in %s', (source) => {
    expect(impuritiesOf(source, known)).toStrictEqual([]);
  });
});
