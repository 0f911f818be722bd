import { parseArgs } from 'node:util';
import { textError } from '@gateway/domain/field-rules';
import { type ChecksumMode, checksumModes, merchantNameRule } from '@gateway/domain/merchant';
import { StartError } from '../process.ts';

/** What an operator asks for. No command takes a secret: arguments are seen by every user of the machine. */
export type MerchantCommand =
  | { readonly kind: 'help' }
  | { readonly kind: 'create'; readonly name: string; readonly json: boolean }
  | { readonly kind: 'list'; readonly json: boolean }
  | { readonly kind: 'checksum'; readonly mode: ChecksumMode; readonly clientId: string }
  | { readonly kind: 'secret add'; readonly clientId: string; readonly endsAt: Date | null; readonly json: boolean }
  | { readonly kind: 'secret list'; readonly clientId: string; readonly json: boolean }
  | {
      readonly kind: 'secret revoke';
      readonly clientId: string;
      readonly secretId: number;
      readonly endsAt: Date | null;
    };

export const merchantUsage = `Usage: pnpm merchant COMMAND
  create --name NAME [--json]                   a merchant with its first client id and secret
  list [--json]                                 all merchants
  checksum versioned|required CLIENT_ID         how the merchant's order checksums are treated
  secret add CLIENT_ID [--ends TIME] [--json]   one more secret, which works at once
  secret list CLIENT_ID [--json]                the secrets by their number, never the secrets themselves
  secret revoke CLIENT_ID NUMBER [--ends TIME]  lets a secret end within a second, or at TIME
TIME is ISO 8601 with an offset, such as 2027-01-31T12:00:00Z.`;

const options = {
  name: { type: 'string' },
  ends: { type: 'string' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;

/** What follows each command: its arguments, and the options that it takes. */
const commands = new Map<string, { takes: readonly string[]; options: readonly string[] }>([
  ['create', { takes: [], options: ['name', 'json'] }],
  ['list', { takes: [], options: ['json'] }],
  ['checksum', { takes: [checksumModes.join('|'), 'CLIENT_ID'], options: [] }],
  ['secret add', { takes: ['CLIENT_ID'], options: ['ends', 'json'] }],
  ['secret list', { takes: ['CLIENT_ID'], options: ['json'] }],
  ['secret revoke', { takes: ['CLIENT_ID', 'NUMBER'], options: ['ends'] }],
]);

/** Reads the arguments of `pnpm merchant`. Throws {@link StartError} with what is wrong in one sentence, and the usage. */
export function readMerchantCommand(args: readonly string[], nowMs: number): MerchantCommand {
  const { values, positionals } = parsed(args);
  if (values.help) return { kind: 'help' };
  const [kind, words] = kindOf(positionals);
  const command = commands.get(kind);
  if (command === undefined) throw fault(kind === '' ? 'A command is missing.' : `There is no command ${kind}.`);
  if (words.length !== command.takes.length) {
    throw fault(`${kind} takes ${command.takes.join(' ') || 'options only'}.`);
  }
  const other = Object.keys(values).find((name) => !command.options.includes(name));
  if (other !== undefined) throw fault(`${kind} does not take --${other}.`);

  const [first = '', second = ''] = words;
  const json = values.json ?? false;
  const endsAt = values.ends === undefined ? null : timeOf(values.ends);
  switch (kind) {
    case 'create':
      return { kind, name: nameOf(values.name), json };
    case 'list':
      return { kind, json };
    case 'checksum': {
      const mode = checksumModes.find((known) => known === first);
      if (mode === undefined) throw fault(`Checksums are ${checksumModes.join(' or ')}.`);
      return { kind, mode, clientId: second };
    }
    case 'secret add':
      if (endsAt !== null && endsAt.getTime() <= nowMs) throw fault('--ends must be a time to come.');
      return { kind, clientId: first, endsAt, json };
    case 'secret list':
      return { kind, clientId: first, json };
    default:
      if (!/^[1-9]\d{0,14}$/.test(second)) throw fault('NUMBER must be one that secret list tells.');
      return { kind: 'secret revoke', clientId: first, secretId: Number(second), endsAt };
  }
}

function parsed(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], allowPositionals: true, options });
  } catch (error) {
    // Node.js's first sentence says what is wrong; those after it advise on what no command here takes.
    throw fault(`${error instanceof Error ? error.message.split(/\.\s/)[0] : error}.`);
  }
}

/** The command, of one word or two, and the words after it. */
function kindOf([noun = '', ...rest]: readonly string[]): [kind: string, words: readonly string[]] {
  if (noun !== 'secret') return [noun, rest];
  const [verb = '', ...words] = rest;
  return [`secret ${verb}`.trimEnd(), words];
}

function nameOf(name: string | undefined): string {
  if (name === undefined) throw fault('--name is missing.');
  const wrong = textError(merchantNameRule, name);
  if (wrong !== undefined) throw fault(`--name ${wrong.message}.`);
  return name;
}

function timeOf(written: string): Date {
  const day = /^(\d{4}-\d\d-\d\d)T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)$/.exec(written)?.[1];
  const time = new Date(written);
  // Date takes 30 February for 2 March.
  const isTime = day !== undefined && !Number.isNaN(time.getTime());
  if (!isTime || !new Date(`${day}T00:00Z`).toISOString().startsWith(day)) {
    throw fault('--ends must be a time that exists, as ISO 8601 with an offset.');
  }
  return time;
}

function fault(sentence: string): StartError {
  return new StartError(`${sentence}\n\n${merchantUsage}`);
}
