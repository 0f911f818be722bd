import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

/** A process of this machine. On Linux a zombie has an empty command. */
export type Process = { readonly pid: number; readonly parent: number; readonly command: string };

/** Lists all processes, from /proc on Linux, where `ps` is an optional package, and with `ps` elsewhere. */
export function listProcesses(): Process[] {
  if (process.platform === 'linux') return readdirSync('/proc').flatMap((entry) => readProcess(entry) ?? []);
  const lines = execFileSync('ps', ['-ww', '-axo', 'pid=,ppid=,command='], { encoding: 'utf8' }).trim().split('\n');
  return lines.map((line) => {
    const [, pid, parent, command = ''] = /^ *(\d+) +(\d+) (.*)$/.exec(line) ?? [];
    return { pid: Number(pid), parent: Number(parent), command };
  });
}

function readProcess(entry: string): Process | undefined {
  try {
    // proc(5): the parent is field 4. Field 2, the name in parentheses, may contain spaces.
    const [, parent] = readFileSync(`/proc/${entry}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ');
    const command = readFileSync(`/proc/${entry}/cmdline`, 'utf8').replaceAll('\0', ' ');
    return { pid: Number(entry), parent: Number(parent), command };
  } catch {
    return undefined; // Either this is not a process, or it has exited.
  }
}

/** Returns the ids of a process's running children. */
export function childrenOf(pid: number): number[] {
  return listProcesses().flatMap((child) => (child.parent === pid ? [child.pid] : []));
}
