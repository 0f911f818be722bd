import { execFileSync } from 'node:child_process';

/** Debian's Python, because only it finds the Debian package python3-grpcio. */
export const python = '/usr/bin/python3';

/** Returns why programs with grpcio can't run on this machine, or `undefined` if they can. */
export function missingGrpcio(): string | undefined {
  try {
    execFileSync(python, ['-c', 'import grpc'], { stdio: 'ignore' });
    return undefined;
  } catch {
    return 'python3-grpcio is not installed';
  }
}
