import { readFile } from 'node:fs/promises';

/** Linux reports CPU times in hundredths of a second to every program that reads them (`USER_HZ`). */
const microsecondsPerTick = 10_000;

/** Returns the CPU microseconds used by a process and its ended children, or NaN if there is no /proc. */
export async function cpuMicroseconds(pid: number): Promise<number> {
  const fields = await statFields(pid);
  // utime, stime, cutime and cstime are fields 14 to 17 (proc_pid_stat(5)).
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  return fields.length === 0 ? Number.NaN : ticks * microsecondsPerTick;
}

/** Returns the CPU microseconds of all processes of the PostgreSQL server to which a backend belongs. */
export async function databaseCpuMicroseconds(backendPid: number): Promise<number> {
  const postmaster = Number((await statFields(backendPid))[1]);
  const children = await readFile(`/proc/${postmaster}/task/${postmaster}/children`, 'utf8').catch(() => '');
  const times = await Promise.all([postmaster, ...children.trim().split(' ').map(Number)].map(cpuMicroseconds));
  // A backend that has just ended can't be read. Its time becomes part of the postmaster's.
  return times.slice(1).reduce((sum, time) => sum + (time || 0), times[0] ?? Number.NaN);
}

/** Returns the resident memory in MiB, or NaN if there is no /proc. */
export async function residentMib(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? Number.NaN) / 1_024;
}

/** Returns the fields of /proc/PID/stat after the second, which is a name in parentheses and may contain spaces. */
async function statFields(pid: number): Promise<string[]> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  return stat === '' ? [] : stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}
