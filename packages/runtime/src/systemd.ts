import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Logger } from './logger.ts';
import { messageOf } from './process.ts';

/** Whether systemd started this process from a unit with `Type=notify`. */
export const isUnderSystemd = process.env.NOTIFY_SOCKET !== undefined;

/**
 * The time limit of a notification, which must be shorter than that of a stop. systemd confirms within milliseconds.
 */
const timeoutMs = 2_000;

/**
 * Notifies systemd of the state of the service. Uses the program `systemd-notify`, because Node.js has no Unix datagram
 * sockets. A failure is only logged.
 */
export async function notifySystemd(state: 'READY=1' | 'STOPPING=1', logger: Logger): Promise<void> {
  if (!isUnderSystemd) return;
  try {
    await promisify(execFile)('systemd-notify', [state], { timeout: timeoutMs });
  } catch (error) {
    logger.error({ state, reason: messageOf(error) }, 'systemd not notified');
  }
}
