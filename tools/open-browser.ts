import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { access, constants, mkdir, mkdtempDisposable, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { type Browser, chromium } from 'playwright-core';
import { waitLimitMs } from './test-limits.ts';

/**
 * The usual paths of Chromium and Chrome. CHROMIUM_PATH replaces them. The headless shell comes first, because it needs
 * less CPU time. `test:slow` uses a complete browser, as customers do.
 */
const usualPaths = [
  ...(process.env.MODE === 'slow' ? [] : ['/usr/bin/chromium-headless-shell']),
  ...['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome', '/snap/bin/chromium'],
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
];

/** Chromium as an npm package for Linux on x64. As a dependency, it would add 66 MB to every installation. */
const packaged = { name: '@sparticuz/chromium', version: '147.0.0' };
const cache = join(import.meta.dirname, '../node_modules/.cache/chromium');

/** There is no sandbox, because containers don't allow one, and tests only open our own pages. */
const browserArguments = [
  ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-sync'],
  ...['--disable-background-networking', '--disable-component-update'],
  // The pages of a test share one renderer. With the headless shell, its tests need less than half of the CPU time.
  ...['--renderer-process-limit=1', '--disable-features=SpareRendererForSitePerProcess,BackForwardCache'],
];

export type OpenedBrowser =
  | { readonly kind: 'opened'; readonly browser: Browser; readonly name: string }
  | { readonly kind: 'none'; readonly reason: string };

/**
 * Opens the installed Chromium or Chrome, or else Chromium from npm. Never rejects: if none opens, returns the reasons.
 */
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

interface Executable {
  readonly executablePath: string;
  readonly args: string[];
}

async function findInstalled(): Promise<Executable> {
  const { CHROMIUM_PATH } = process.env;
  for (const executablePath of CHROMIUM_PATH ? [CHROMIUM_PATH] : usualPaths) {
    const isExecutable = await access(executablePath, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (isExecutable) return { executablePath, args: browserArguments };
  }
  throw new Error('no installed Chromium or Chrome');
}

async function installPackaged(): Promise<Executable> {
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    throw new Error(`${packaged.name} has no browser for ${process.platform} ${process.arch}`);
  }
  const executablePath = join(cache, 'chromium');
  if (!existsSync(executablePath)) await makeCache();
  return { executablePath, args: browserArguments };
}

/**
 * Installs and unpacks the browser in a temporary folder, and renames the folder when it is complete: test files run in
 * parallel, and a program can't be started while a process writes it (ETXTBSY).
 */
async function makeCache(): Promise<void> {
  await mkdir(dirname(cache), { recursive: true });
  await using draft = await mkdtempDisposable(`${cache}-`);
  const wanted = `${packaged.name}@${packaged.version}`;
  const args = ['install', '--prefix', draft.path, '--no-audit', '--no-fund', '--ignore-scripts', wanted];
  await promisify(execFile)('npm', args, { timeout: waitLimitMs, cwd: draft.path });
  // The package unpacks the browser to TMPDIR. The system's own folder may be mounted noexec, and its contents are not
  // kept.
  const unpack = `await (await import('${packaged.name}')).default.executablePath()`;
  await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', unpack], {
    cwd: draft.path,
    timeout: waitLimitMs,
    env: { ...process.env, TMPDIR: draft.path },
  });
  await rename(draft.path, cache).catch((error: NodeJS.ErrnoException) => {
    // rename(2) does not replace a folder that has content: another test file was faster.
    if (!['ENOTEMPTY', 'EEXIST'].includes(error.code ?? '')) throw error;
  });
}
