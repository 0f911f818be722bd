import { readFileSync } from 'node:fs';

// A supervisor that starts the gateway with npx signals only npx, which does not forward SIGTERM to the processes that
// pnpm runs (docs/decisions/069-stop-with-the-package-manager.md).

const checkEveryMs = 1_000;

/** A process and its parent. */
interface Start {
  readonly pid: number;
  readonly parent: number;
}

/**
 * If this process runs in a script of a package manager, calls `onEnd` once the package manager has ended. Otherwise,
 * for example under a supervisor, never calls it. Works only on Linux.
 */
export function watchPackageManager(onEnd: () => void): void {
  const starts = packageManagerStarts(process.pid);
  if (starts.length === 0) return;
  const timer = setInterval(() => {
    // When a process ends, its children get another parent.
    if (starts.every(({ pid, parent }) => findProcess(pid)?.parent === parent)) return;
    clearInterval(timer);
    onEnd();
  }, checkEveryMs).unref();
}

/**
 * Returns a process and its ancestors below the outermost package manager, each with its parent. For example, npx runs
 * a shell, which runs pnpm, which runs a shell, which runs the gateway. The package manager's own parent is not
 * included, because it may end first, as a shell does after `npx … &`. Processes outside the session are not included
 * either, because setsid detaches a process on purpose.
 */
export function packageManagerStarts(from: number): Start[] {
  const session = findProcess(from)?.session;
  const starts: Start[] = [];
  for (let pid = from; isInScript(pid); pid = starts.at(-1)?.parent ?? 0) {
    const parent = findProcess(pid)?.parent;
    if (parent === undefined || findProcess(parent)?.session !== session) break;
    starts.push({ pid, parent });
  }
  return starts;
}

/** Whether a package manager set the initial environment of a process. */
function isInScript(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8').includes('\0npm_lifecycle_event=');
  } catch {
    return false;
  }
}

function findProcess(pid: number): { readonly parent: number; readonly session: number } | undefined {
  try {
    // proc_pid_stat(5): the fields after the name, which may contain spaces, are the state, parent, group and session.
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const [, parent, , session] = stat
      .slice(stat.lastIndexOf(') ') + 2)
      .split(' ')
      .map(Number);
    return parent === undefined || session === undefined ? undefined : { parent, session };
  } catch {
    return undefined;
  }
}
