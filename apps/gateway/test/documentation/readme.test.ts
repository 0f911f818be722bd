import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { afterEach, expect, test } from 'vitest';
import { missing, mustSkip } from '../../../../tools/skip-if-missing.ts';
import { waitLimitMs } from '../../../../tools/test-limits.ts';
import { endProcesses, newClusterDir, startProcess } from '../helpers/gateway-process.ts';
import { pressPay } from '../helpers/send-order.ts';

afterEach(endProcesses);

test.skipIf(mustSkip('the commands of the README', missing('curl')))(
  'the steps that the start prints and the commands in the README work unchanged, in this order',
  async () => {
    const dataDir = await newClusterDir();
    const { baseUrl, demoBanner } = await startProcess({ DATA_DIR: dataDir });
    const banner = await demoBanner();

    const [, orderId, paymentLink = ''] = /1\. Pay the order (\S+): .+?\n +(http\S+)\n/s.exec(banner) ?? [];
    expect(orderId).toBe('demo-1000');
    const paid = await pressPay(paymentLink);
    const returnUrl = paid.headers.get('location') ?? '';
    expect([paid.status, returnUrl.startsWith(`${baseUrl}/demo/return?`)]).toEqual([303, true]);
    const page = await (await fetch(returnUrl)).text();
    for (const shown of ['Thank you for your payment', '>Valid<', 'demo-1000', '>PAID<']) expect(page).toContain(shown);

    const [setVariables = 'no variables'] = /^export .+?[^\\]$/ms.exec(banner) ?? [];
    const run = async (commands: string) => {
      // No other variable is set, so the commands must set all that they need. `-eu` ends them at the first error.
      const options = { timeout: waitLimitMs, env: { PATH: process.env.PATH } };
      const { stdout } = await promisify(execFile)('sh', ['-euc', `${setVariables}\n${commands}`], options);
      return stdout;
    };
    const readme = await readFile(new URL('../../../../README.md', import.meta.url), 'utf8');
    const [start, runChecks, create = '', call = '', ...furtherBlocks] = [
      ...readme.matchAll(/^```sh\n(.+?)^```$/gms),
    ].map(([, commands = '']) => commands);
    expect([start, runChecks, furtherBlocks]).toEqual([
      expect.stringMatching(/^npx .+ start\n$/),
      expect.stringMatching(/^npx .+ test\n$/),
      [],
    ]);

    expect(banner).toContain(create);
    expect(await run(create)).toMatch(/^HTTP\/1.1 201 Created/);
    expect(await run(create)).toMatch(/^HTTP\/1.1 200 OK\r\n(?:.+\r\n)*idempotent-replayed: true\r\n/i);
    expect(await run(create.replace('10.00', '11.00'))).toMatch(/^HTTP\/1.1 409 .*"order_amount"/s);

    const [order, cancelled, list, feed] = (await run(call))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(order).toMatchObject({ order_id: 'demo-1001', order_status: 'UN_PAID', order_amount: 10 });
    expect(cancelled).toEqual({ ...order, order_status: 'CANCELLED', cancelled_at: expect.any(String) });
    expect(list.orders).toMatchObject([cancelled, { order_id: 'demo-1000', order_status: 'PAID' }]);
    expect(feed.events).toMatchObject([
      { type: 'order.paid', data: { order_id: 'demo-1000' } },
      { type: 'order.cancelled', data: cancelled },
    ]);
  },
);
