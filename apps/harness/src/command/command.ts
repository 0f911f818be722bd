import { mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { GatewayAddresses } from '@order-gateway/fixtures/wire';
import { type Command, CommanderError, InvalidArgumentError } from 'commander';

/** Exit codes: success; failure; an argument, file or environment variable is invalid; interrupted by a signal. */
export const exitCodes = { passed: 0, failed: 1, invalid: 2, interrupted: 130 } as const;

/** An error that the user can correct, such as an invalid argument, file or environment variable. */
export class UsageError extends Error {}

/** Returns an error's message, without a stack. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/**
 * Parses the arguments and runs a command. Prints the message of an error. The exit code depends on its class, and on
 * whether the command was interrupted. If the output is closed, as by `| head -1`, the process keeps running, because
 * it must still stop its gateway.
 */
export async function runCommand(
  command: Command,
  main: () => Promise<number>,
  interrupted?: AbortSignal,
): Promise<void> {
  for (const output of [process.stdout, process.stderr]) output.on('error', () => {});
  try {
    command.exitOverride().showHelpAfterError('Add --help for all options.');
    command.parse();
    process.exitCode = await main();
  } catch (error) {
    // Commander has printed its own errors and the help.
    if (error instanceof CommanderError) {
      process.exitCode = error.exitCode === 0 ? exitCodes.passed : exitCodes.invalid;
      return;
    }
    process.stderr.write(`${messageOf(error)}\n`);
    // Does not wait for timers, such as those of fixtures that wait for a time.
    if (interrupted?.aborted) process.exit(exitCodes.interrupted);
    process.exitCode = error instanceof UsageError ? exitCodes.invalid : exitCodes.failed;
  }
}

/** Calls back on every signal that ends a command. Closing a terminal sends SIGHUP. */
export function onEndSignal(callback: () => void): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, callback);
}

/**
 * Runs a step whose errors the user can correct, such as an unreadable or invalid file, and turns them into usage
 * errors.
 */
export async function withUsageErrors<Result>(step: () => Result | Promise<Result>): Promise<Result> {
  try {
    return await step();
  } catch (error) {
    throw new UsageError(messageOf(error));
  }
}

/**
 * Creates the folders of output files, and throws a usage error if one of the files can't be written. Call it before a
 * run, so that no result is lost.
 */
export function prepareOutputs(...files: readonly (string | undefined)[]): Promise<void> {
  return withUsageErrors(async () => {
    for (const file of files) {
      if (file === undefined) continue;
      await mkdir(dirname(file), { recursive: true });
      await (await open(file, 'a')).close();
    }
  });
}

export function parseNumber(text: string): number {
  if (!/^\d+(\.\d+)?$/.test(text)) throw new InvalidArgumentError('It must be a number.');
  return Number(text);
}

/** Parses a whole number. */
export function parseWhole(text: string): number {
  const number = parseNumber(text);
  if (!Number.isSafeInteger(number)) throw new InvalidArgumentError('It must be a whole number.');
  return number;
}

/** Parses a time such as `90`, `90s`, `2m` or `1h`. Returns the seconds. */
export function parseSeconds(text: string): number {
  const [, amount, unit = 's'] = /^(\d+(?:\.\d+)?)(s|m|h)?$/.exec(text) ?? [];
  if (amount === undefined) throw new InvalidArgumentError('It must be a time such as 30s, 2m or 1h.');
  return Number(amount) * (unit === 'h' ? 3_600 : unit === 'm' ? 60 : 1);
}

/** Adds the options for the addresses of a gateway. */
export function withGatewayOptions(command: Command, defaultNote = ' (default: start one for this run)'): Command {
  return command
    .option('--http <url>', `the HTTP address of a running gateway${defaultNote}`)
    .option('--grpc <host:port>', 'its gRPC address, or https://HOST:PORT with TLS; use --http and --grpc together');
}

export function givenGateway({ http, grpc }: { http?: string; grpc?: string }): GatewayAddresses | undefined {
  if (http === undefined && grpc === undefined) return undefined;
  if (http === undefined || grpc === undefined) throw new UsageError('--http and --grpc must be given together');
  if (!/^https?:\/\/[^/]/.test(http) || !URL.canParse(http)) {
    throw new UsageError('--http must be an http or https URL');
  }
  if (!/^(https:\/\/)?[^\s/]+:\d{1,5}$/.test(grpc))
    throw new UsageError('--grpc must be HOST:PORT or https://HOST:PORT');
  return { httpUrl: http.replace(/\/+$/, ''), grpcAddress: grpc };
}

/**
 * Reads credentials from the variables `CLIENT_ID` and `CLIENT_SECRET`, both with a prefix; `undefined` unless both are
 * set.
 */
export function credentialsFromEnvironment(prefix = '') {
  const clientId = process.env[`${prefix}CLIENT_ID`];
  const clientSecret = process.env[`${prefix}CLIENT_SECRET`];
  return clientId && clientSecret ? { clientId, clientSecret } : undefined;
}
