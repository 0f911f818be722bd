import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, expect, test } from 'vitest';
import { missing, mustSkip } from '../../../../../tools/skip-if-missing.ts';
import { temporaryFolder } from '../../../../../tools/test-resources.ts';
import { endLater, endProcesses, startOnNewDatabase, stopGracefully } from '../../helpers/gateway-process.ts';

// Tests the notifications to systemd. A script takes the place of systemd.

afterEach(endProcesses);

/**
 * Opens the socket of systemd, which Node.js can't do, and prints each notification. systemd-notify also sends a
 * barrier, to learn that its notification has arrived.
 */
const receiver = `
import socket, sys
server = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
server.bind(sys.argv[1])
print('bound', flush=True)
while True:
  notification = server.recv(4096).decode()
  if notification != 'BARRIER=1': print(notification, flush=True)
`;

test.skipIf(mustSkip('notifications to systemd', missing('systemd-notify') ?? missing('python3'))).for(['1', '2'])(
  'with WORKERS=%s, systemd is notified once when the gateway is ready, and once when it stops',
  async (WORKERS, { skip }) => {
    const socket = join(await temporaryFolder(), 'notify');
    const systemd = spawn('python3', ['-c', receiver, socket], { stdio: ['ignore', 'pipe', 'inherit'] });
    endLater(systemd);
    const notifications: string[] = [];
    const received = createInterface({ input: systemd.stdout }).on('line', (line) => notifications.push(line));
    await once(received, 'line');

    const gateway = await startOnNewDatabase({ NOTIFY_SOCKET: socket, WORKERS });
    await expect.poll(() => notifications).toEqual(['bound', 'READY=1']);
    // SIGHUP reloads certificates. Without TLS, it has no effect.
    gateway.child.kill('SIGHUP');
    expect((await fetch(`${gateway.url}/health/ready`)).status).toBe(200);
    await stopGracefully(gateway.child, skip);
    await expect.poll(() => notifications).toEqual(['bound', 'READY=1', 'STOPPING=1']);
    await expect.poll(() => gateway.lines.filter((line) => line.includes('stopping'))).toHaveLength(1);
  },
);
