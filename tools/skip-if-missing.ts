import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** The programs that tests use only if they are installed. */
export const optionalPrograms = [
  'buildah',
  'chromium',
  'curl',
  'grpc_python_plugin',
  'haproxy',
  'kubectl',
  'nginx',
  'openssl',
  'pg_basebackup',
  'pg_config',
  'pgbench',
  'pgbouncer',
  'php',
  'prometheus',
  'promtool',
  'protoc',
  'psql',
  'python3',
  'sed',
  'systemd-analyze',
  'systemd-notify',
  'tar',
  'unshare',
  'wrk',
] as const;

/**
 * Returns whether tests must be skipped because this machine lacks something, and prints one line about it:
 * `test.skipIf(mustSkip('broken connections under wrk', missing('wrk')))`.
 */
export function mustSkip(tests: string, reason: string | undefined): boolean {
  if (reason !== undefined) process.stderr.write(`\nSKIPPED: ${tests}: ${reason}\n`);
  return reason !== undefined;
}

/** Returns why a program can't run on this machine, or `undefined` if it is in the PATH. */
export function missing(program: (typeof optionalPrograms)[number]): string | undefined {
  return findProgram(program) === undefined ? `${program} is not installed` : undefined;
}

/** Returns the path of a program in the PATH, or `undefined` if it is not there. */
export function findProgram(program: string): string | undefined {
  return process.env.PATH?.split(delimiter)
    .map((folder) => join(folder, program))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}
