import { once } from 'node:events';
import { createServer } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { isInstalled } from './programs.ts';
import { sendJsonByWrk } from './senders.ts';

const hasWrk = await isInstalled('wrk');
if (!hasWrk) process.stderr.write('\nLEFT OUT: what the bench makes of wrk. wrk is not installed.\n\n');

test.runIf(hasWrk)(
  'a connection that broke takes nothing from the answers of wrk',
  async () => {
    const concurrency = 2;
    const came = { answers: 0, breaks: 0 };
    const server = createServer((request, response) => {
      request.resume().on('end', () => {
        const breaks = (came.answers + came.breaks) % 5 === 4;
        came[breaks ? 'breaks' : 'answers'] += 1;
        if (breaks) request.socket.destroy();
        else response.writeHead(201).end('{}');
      });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    const { port } = Object(server.address());
    const credentials = { clientId: 'app_1', clientSecret: 'sk_1' };
    const { answers, failed } = await sendJsonByWrk({ port, concurrency, seconds: 1, run: 'run-1', credentials });
    expect(came.breaks).toBeGreaterThan(concurrency);
    expect(failed).toBeGreaterThan(concurrency);
    // What was on its way at the end is not seen.
    expect(answers).toBeGreaterThanOrEqual(came.answers - concurrency);
    expect(answers).toBeLessThanOrEqual(came.answers);
  },
  30_000,
);
