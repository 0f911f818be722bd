import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { OwnGateway } from '../../src/gateway/own-gateway.ts';
import type { FloodOptions, FloodResult } from './flood.ts';

/** Sends a flood to a gateway from a separate process. */
export async function runFlood(
  { httpUrl, grpcAddress }: Pick<OwnGateway, 'httpUrl' | 'grpcAddress'>,
  options: Omit<FloodOptions, 'port'>,
): Promise<FloodResult> {
  const port = Number((options.protocol === 'json' ? httpUrl : grpcAddress).split(':').at(-1));
  const program = join(import.meta.dirname, 'flood.ts');
  const { stdout } = await promisify(execFile)(process.execPath, [program, JSON.stringify({ ...options, port })]);
  return JSON.parse(stdout);
}

/** Returns the mean number of orders created per second. */
export function goodputOf({ createdBySecond }: FloodResult): number {
  return Math.round(createdBySecond.reduce((sum, count) => sum + count, 0) / createdBySecond.length);
}
