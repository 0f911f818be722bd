import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { readText, temporaryFolder } from './test-resources.ts';

const deployFolder = join(import.meta.dirname, '../deploy');

/** Why a proxy can't run on this machine; `undefined`: it can. */
export function missing(program: 'haproxy' | 'nginx'): string | undefined {
  return spawnSync(program, ['-v']).error === undefined ? undefined : `${program} is not installed`;
}

/** Ports that were free a moment ago. */
export function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'));
  return Promise.all(
    servers.map(async (server) => {
      await once(server, 'listening');
      const address = server.address();
      server.close();
      return typeof address === 'object' && address !== null ? address.port : 0;
    }),
  );
}

/** Runs a proxy with its file from deploy/, in which the texts are replaced, until the test ends. */
export async function runProxy(
  program: 'haproxy' | 'nginx',
  replaced: readonly (readonly [text: string, by: string])[],
): Promise<void> {
  const file = { haproxy: 'haproxy.cfg', nginx: 'nginx.conf' }[program];
  let text = await readFile(join(deployFolder, file), 'utf8');
  for (const [from, to] of replaced) {
    expect(text).toContain(from);
    text = text.replaceAll(from, to);
  }
  const folder = await temporaryFolder();
  const path = join(folder, file);
  await writeFile(path, text);
  const args = program === 'haproxy' ? ['-db', '-f', path] : ['-p', folder, '-c', path, '-g', 'daemon off;'];
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  const output = readText(child.stderr);
  const exited = once(child, 'exit');
  let isStopping = false;
  exited.then(([code]) => isStopping || process.stderr.write(`${program} ended with ${code}: ${output()}\n`));
  onTestFinished(async () => {
    isStopping = true;
    child.kill('SIGTERM');
    await exited;
  });
}
