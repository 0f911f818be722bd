import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { access, constants, mkdir, mkdtempDisposable, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { type Browser, chromium } from 'playwright-core';
import { waitLimitMs } from '../../../../tools/test-limits.ts';

/** Where Chromium and Chrome are usually installed. CHROMIUM_PATH names another path. */
const usualPaths = [
  ...['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome', '/snap/bin/chromium'],
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
];

/** Chromium in an npm package, for Linux on x64. Not a dependency, because every first start would download its 66 MB. */
const packaged = { name: '@sparticuz/chromium', version: '147.0.0' };
const cache = join(import.meta.dirname, '../../node_modules/.cache/chromium');

/** No sandbox: containers do not allow one, and only our own pages are opened. */
const ownArguments = [
  ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-sync'],
  ...['--disable-background-networking', '--disable-component-update'],
];

export type OpenedBrowser =
  | { readonly kind: 'opened'; readonly browser: Browser; readonly name: string }
  | { readonly kind: 'none'; readonly reason: string };

/** Opens an installed Chromium or Chrome, otherwise one from npm. Never rejects: without a browser it returns the reason. */
export async function openBrowser(): Promise<OpenedBrowser> {
  const reasons: string[] = [];
  for (const find of [findInstalled, installPackaged]) {
    try {
      const { executablePath, args } = await find();
      const browser = await chromium.launch({ executablePath, args, timeout: waitLimitMs });
      return { kind: 'opened', browser, name: `Chromium ${browser.version()} at ${executablePath}` };
    } catch (error) {
      reasons.push(error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error));
    }
  }
  return { kind: 'none', reason: reasons.join('; ') };
}

interface Found {
  readonly executablePath: string;
  readonly args: string[];
}

async function findInstalled(): Promise<Found> {
  const { CHROMIUM_PATH } = process.env;
  for (const executablePath of CHROMIUM_PATH ? [CHROMIUM_PATH] : usualPaths) {
    const isThere = await access(executablePath, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (isThere) return { executablePath, args: ownArguments };
  }
  throw new Error('no installed Chromium or Chrome');
}

async function installPackaged(): Promise<Found> {
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    throw new Error(`${packaged.name} has none for ${process.platform} ${process.arch}`);
  }
  const executablePath = join(cache, 'chromium');
  if (!existsSync(executablePath)) await makeCache();
  return { executablePath, args: ownArguments };
}

/**
 * Installs and unpacks the browser in another folder, which is renamed when it is complete: test files run at the same time, and
 * a program can't be started while a process writes it (ETXTBSY).
 */
async function makeCache(): Promise<void> {
  await mkdir(dirname(cache), { recursive: true });
  await using draft = await mkdtempDisposable(`${cache}-`);
  const wanted = `${packaged.name}@${packaged.version}`;
  const args = ['install', '--prefix', draft.path, '--no-audit', '--no-fund', '--ignore-scripts', wanted];
  await promisify(execFile)('npm', args, { timeout: waitLimitMs, cwd: draft.path });
  // It unpacks itself to the temporary folder, here to one that stays and that programs may be run from.
  const unpack = `await (await import('${packaged.name}')).default.executablePath()`;
  await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', unpack], {
    cwd: draft.path,
    timeout: waitLimitMs,
    env: { ...process.env, TMPDIR: draft.path },
  });
  await rename(draft.path, cache).catch((error: NodeJS.ErrnoException) => {
    // rename(2) does not replace a folder with content, here that of another test file.
    if (!['ENOTEMPTY', 'EEXIST'].includes(error.code ?? '')) throw error;
  });
}
