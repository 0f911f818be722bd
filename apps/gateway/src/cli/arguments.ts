import { createCommand, helpFormat } from '@order-gateway/command';
import { isClientId, lateDays, merchantNameRule } from '@order-gateway/domain/accounts';
import { lifetimeMs } from '@order-gateway/domain/orders';
import { textError } from '@order-gateway/domain/requests';
import { UsageError, usageExitCode } from '@order-gateway/runtime/process';
import { type Command, Option } from 'commander';
import { parseRate } from '../config.ts';
import type { OpenAccounts } from './with-database.ts';

const environmentHelp = `
Environment: the variables of the gateway, such as DATABASE_URL and SECRETS_KEY
(default: those of the embedded PostgreSQL in .data).
Exit codes: 0 success; 1 failure; 2 an argument is invalid, so that nothing was
done.`;

export const jsonHelp = 'print JSON, one object per line';
export const clientIdHelp = 'the client id, as `merchant list` shows it';
export const timeForm = 'an ISO 8601 time with an offset, such as 2027-01-31T12:00:00Z';

/** Creates a program that prints its help after a wrong argument and exits with the code for usage errors. */
export function createProgram(name: string, description: string): Command {
  return createCommand(name, description)
    .showHelpAfterError()
    .addHelpText('after', environmentHelp)
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : usageExitCode));
}

/** Creates a program whose commands are recorded in the audit log, and the function that opens accounts for them. */
export function createRecordedProgram(name: string, description: string, openAccounts: OpenAccounts) {
  const program = createProgram(name, description)
    .addOption(actorOption())
    .configureHelp({ ...helpFormat, showGlobalOptions: true })
    .configureOutput({
      // The arguments may contain a secret that was typed by mistake.
      outputError: (text, write) => write(text.replaceAll(/\b(sk|whsec)_[\w+/=]+/g, '$1_...')),
    });
  const withAccounts: OpenAccounts = (work, options) => openAccounts(work, { actor: actorOf(program), ...options });
  return { program, withAccounts };
}

export function accountCommand(parent: Command, name: string, description: string): Command {
  return parent.command(name).description(description).argument('<CLIENT_ID>', clientIdHelp, parseClientId);
}

/** Creates the option `--name`. `use` says what the name is for. */
export function nameOption(use: string): Option {
  const help = `${use}, 1 to ${merchantNameRule.lengthMax} characters`;
  return new Option('--name <NAME>', help).argParser(parseName('--name'));
}

/** Creates the option `--as` for commands that are recorded in the audit log. */
export function actorOption(): Option {
  return new Option('--as <NAME>', 'the actor in the audit log (default: user@host)').argParser(parseName('--as'));
}

/** Returns the value of a program's option `--as`, or `undefined` if the option is absent. */
export function actorOf(program: Command): string | undefined {
  return program.opts<{ as?: string }>().as;
}

export const parseClientId = checked(
  (text) => (isClientId(text) ? text : undefined),
  'CLIENT_ID must be a client id shown by `merchant list`.',
);

export const parseSecretNumber = checked(
  (text) => (/^[1-9]\d{0,14}$/.test(text) ? Number(text) : undefined),
  'NUMBER must be a secret number shown by `merchant secret list`.',
);

export const parseCount = checked(
  (text) => (/^[1-9]\d{0,5}$/.test(text) ? Number(text) : undefined),
  'NUMBER must be a whole number from 1 to 999999.',
);

export const lateDaysForm = `${lateDays.min} to ${lateDays.max} days`;

export const parseLateDays = checked(
  (text) => (/^[1-9]\d?$/.test(text) && Number(text) <= lateDays.max ? Number(text) : undefined),
  `NUMBER must be a whole number from ${lateDays.min} to ${lateDays.max}.`,
);

/** Parses a rate limit in calls per second. Returns `null` for `none`. */
export const parseLimit = checked(
  (text) => (text === 'none' ? null : parseRate(text)),
  'NUMBER must be a whole number from 1 to 1000000, or none.',
);

/** Parses a lifetime and returns it in seconds. Returns `null` for `none`. */
export const parseLifetime = checked((text) => {
  if (text === 'none') return null;
  const [, count, unit] = /^([1-9]\d{0,6})([mhd])$/.exec(text) ?? [];
  const seconds = Number(count) * { m: 60, h: 3_600, d: 86_400 }[unit as 'm' | 'h' | 'd'];
  return seconds * 1_000 <= lifetimeMs.max ? seconds : undefined;
}, 'LIFETIME must be 1m to 366d, such as 30m, 24h or 7d, or none.');

export const parseTime = (option: '--before' | '--from' | '--ends') =>
  checked((text) => {
    try {
      // Unlike Date, Temporal rejects 30 February and a time without an offset.
      const time = new Date(Temporal.Instant.from(text).epochMilliseconds);
      // ISO 8601 writes other years in a form that PostgreSQL cannot parse.
      return /^(?!0000)\d{4}-/.test(time.toISOString()) ? time : undefined;
    } catch {
      return undefined;
    }
  }, `${option} must be ${timeForm}.`);

export function parseEnd(text: string): Date {
  const end = parseTime('--ends')(text);
  if (end.getTime() > Date.now()) return end;
  throw new UsageError('--ends must be in the future.');
}

function parseName(option: '--name' | '--as'): (text: string) => string {
  return (text) => {
    const error = textError(merchantNameRule, text);
    if (error !== undefined) throw new UsageError(`${option} ${error.message}.`);
    return text;
  };
}

/**
 * Returns a parser that rejects an invalid value with `message`. Commander's own message would repeat the value, which
 * may be a secret.
 */
function checked<Value>(parse: (text: string) => Value | undefined, message: string): (text: string) => Value {
  return (text) => {
    const value = parse(text);
    if (value === undefined) throw new UsageError(message);
    return value;
  };
}
