import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

const readyLimitMs = 60_000;

/** A server that was started for the bench. */
export interface RunningServer {
  readonly pid: number;
  /** What its ready line says. */
  readonly ready: Readonly<Record<string, unknown>>;
  stop(): Promise<void>;
}

const started = new Set<ChildProcess>();

/** Starts a Node.js program and waits until one of its lines is JSON whose `msg` is `ready`. */
export async function startServer(
  args: readonly string[],
  options: { readonly cwd: string; readonly env: NodeJS.ProcessEnv },
): Promise<RunningServer> {
  const child = spawn(process.execPath, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  started.add(child);
  let errors = '';
  child.stderr.on('data', (piece) => {
    errors = `${errors}${piece}`.slice(-4_000);
  });
  const ready = await new Promise<Record<string, unknown>>((resolve, reject) => {
    const patience = setTimeout(() => reject(new Error(`${args[0]} is not ready: ${errors}`)), readyLimitMs);
    child.once('exit', (code) => reject(new Error(`${args[0]} ended with ${code}: ${errors}`)));
    const lines = createInterface(child.stdout).on('line', (line) => {
      const said = line.startsWith('{') ? (JSON.parse(line) as Record<string, unknown>) : {};
      if (said.msg !== 'ready') return;
      clearTimeout(patience);
      // From here on its lines are thrown away unread: reading them would be measured too.
      lines.close();
      child.stdout.resume();
      resolve(said);
    });
  });
  return { pid: child.pid ?? 0, ready, stop: () => stop(child) };
}

/** Stops whatever this module started and is still there. */
export async function stopServers(): Promise<void> {
  await Promise.all([...started].map(stop));
}

async function stop(child: ChildProcess): Promise<void> {
  started.delete(child);
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  const patience = setTimeout(() => child.kill('SIGKILL'), 8_000);
  await exited;
  clearTimeout(patience);
}

/** Runs a program to its end and gives what it wrote to standard output. */
export function runProgram(
  file: string,
  args: readonly string[],
  options: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv } = {},
): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(file, [...args], { ...options, maxBuffer: 64 * 1_024 * 1_024 }, (error, stdout, stderr) => {
      if (error) reject(new Error(`${file} failed: ${error.message}\n${stderr.slice(-2_000)}`));
      else resolve(stdout);
    });
  });
}

/** Whether a program is on the machine. */
export async function isInstalled(program: string): Promise<boolean> {
  return runProgram('sh', ['-c', `command -v ${program}`]).then(
    () => true,
    () => false,
  );
}
