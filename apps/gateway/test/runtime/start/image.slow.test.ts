import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { createTestDatabase } from '@order-gateway/dev-postgres/testing';
import { afterAll, expect, test } from 'vitest';
import { missing, mustSkip } from '../../../../../tools/skip-if-missing.ts';
import { endLater, endProcesses } from '../../helpers/gateway-process.ts';

// Builds the container image twice and runs it without a container engine: mount makes its root file system read-only,
// and chroot sets its user. BASE_IMAGE names the base image, such as the one of .ci/base-image.

const run = promisify(execFile);
const root = join(import.meta.dirname, '../../../../..');
const { BASE_IMAGE: base = 'localhost/node', NODE_EXTRA_CA_CERTS: certificates } = process.env;

/** The maximum size of the application's files in the image, in bytes. */
const appSizeMax = 75_000_000;

async function reasonToSkip(): Promise<string | undefined> {
  const program = missing('buildah') ?? missing('unshare');
  if (program !== undefined) return program;
  if (process.getuid?.() !== 0) return 'only root can mount a file system';
  const hasBase = await run('buildah', ['inspect', '--type', 'image', base]).then(
    () => true,
    () => false,
  );
  return hasBase ? undefined : `there is no base image ${base} (.ci/base-image)`;
}
const skip = mustSkip('the image', await reasonToSkip());

afterAll(endProcesses);

/** Runs buildah with chroot isolation, which needs no container engine. Returns its output. */
async function buildah(...args: string[]): Promise<string> {
  const env = { BUILDAH_ISOLATION: 'chroot', ...process.env };
  return (await run('buildah', args, { cwd: root, env, maxBuffer: 1e8 })).stdout.trim();
}

/** Builds the image of this working tree. Returns its digest. */
async function build(tag: string): Promise<string> {
  const { stdout: committedAt } = await run('git', ['log', '-1', '--format=%ct'], { cwd: root });
  const secret = certificates === undefined ? [] : ['--secret', `id=ca,src=${certificates}`];
  const options = ['--timestamp', committedAt.trim(), '--build-arg', `BASE_IMAGE=${base}`, '--no-cache', ...secret];
  await buildah('build', ...options, '--tag', tag, '.');
  return buildah('inspect', '--type', 'image', '--format', '{{.FromImageDigest}}', tag);
}

/** Returns the sizes of the files below a folder in bytes, by path. */
async function sizesIn(folder: string): Promise<Map<string, number>> {
  const { stdout } = await run('find', [folder, '-type', 'f', '-printf', '%s /%P\n'], { maxBuffer: 1e8 });
  const lines = stdout.trim().split('\n').toSorted();
  return new Map(lines.map((line) => [line.slice(line.indexOf('/')), Number.parseInt(line, 10)]));
}

/**
 * Returns a program and arguments that run a command as the image's user, on the image's file system, which is
 * read-only except for an empty /tmp.
 */
function inImage(folder: string, command: readonly string[]): [string, string[]] {
  const script = `mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && mount -t tmpfs tmpfs "$0/tmp" &&
    mount -t proc proc "$0/proc" && exec chroot --userspec=1000:1000 "$0" sh -c 'cd /app && exec "$@"' sh "$@"`;
  return ['unshare', ['--mount', 'sh', '-c', script, folder, ...command]];
}

test.skipIf(skip)(
  'two builds are identical, and the image runs on a read-only file system and not as root',
  async () => {
    const tags = ['order-gateway-test-1', 'order-gateway-test-2'];
    const containers: string[] = [];
    const { url: databaseUrl, drop } = await createTestDatabase();
    try {
      const [first = '', second] = [await build(tags[0] ?? ''), await build(tags[1] ?? '')];
      expect(first).toMatch(/^sha256:/);
      expect(second).toBe(first);

      const container = await buildah('from', tags[0] ?? '');
      containers.push(container);
      const folder = await buildah('mount', container);
      const files = await sizesIn(join(folder, 'app'));
      const appFiles = [...files.keys()].filter((file) => !file.includes('/node_modules/'));
      expect(appFiles.length).toBeGreaterThan(300);
      expect(appFiles.filter((file) => /\.test\.|\/testing?\/|\/\.(git|env|ci|reports|turbo)/.test(file))).toEqual([]);
      expect(files.values().reduce((sum, size) => sum + size, 0)).toBeLessThan(appSizeMax);

      const image = JSON.parse(await buildah('inspect', '--type', 'image', tags[0] ?? ''));
      const { User: user, Cmd: command, Env: variables } = image.OCIv1.config;
      expect(user).toBe('1000:1000');
      const { PATH } = Object.fromEntries(variables.map((variable: string) => variable.split('=', 2)));
      const env = { PATH, DATABASE_URL: databaseUrl, HTTP_PORT: '0', GRPC_PORT: '0', ADMIN_PORT: '0' };
      const [unshare, migrate] = inImage(folder, ['node', 'apps/gateway/src/cli/migrate.ts']);
      await run(unshare, migrate, { env });
      const [, start] = inImage(folder, command);
      const child = spawn(unshare, start, { env: { ...env, MIGRATE: 'off' }, stdio: ['ignore', 'pipe', 'inherit'] });
      endLater(child);
      const exited = once(child, 'exit');
      let ready: { metrics_url: string } | undefined;
      for await (const line of createInterface({ input: child.stdout })) {
        const entry = JSON.parse(line);
        if (entry.msg === 'ready') ready = entry;
        if (ready !== undefined) break;
      }
      expect(await readFile(`/proc/${child.pid}/status`, 'utf8')).toMatch(/^Uid:\s1000\s1000\s1000\s1000$/m);
      const [, healthCheck] = inImage(folder, ['node', 'apps/gateway/src/cli/health.ts']);
      await run(unshare, healthCheck, { env: { PATH, ADMIN_PORT: new URL(ready?.metrics_url ?? '').port } });
      child.kill('SIGTERM');
      expect(await exited).toEqual([0, null]);
      expect([...(await sizesIn(join(folder, 'app'))).keys()]).toEqual([...files.keys()]);
    } finally {
      for (const container of containers) await buildah('rm', container);
      for (const tag of tags) await buildah('rmi', '--force', tag).catch(() => {});
      await drop();
    }
  },
);
