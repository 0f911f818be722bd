import { join } from 'node:path';
import { rolldown } from 'rolldown';
import { expect, test } from 'vitest';
import { mustSkip } from '../../../../tools/skip-if-missing.ts';
import { runGateway } from '../helpers/running-gateway.ts';
import { createOrder } from '../helpers/send-order.ts';
import { openBrowser } from './open-browser.ts';

const opened = await openBrowser();

test.skipIf(opened.kind === 'none' && mustSkip('Connect GET in a real browser', opened.reason))(
  'connect-web reads orders with GET from a page of the same origin',
  async () => {
    if (opened.kind === 'none') return;
    await using browser = opened.browser;
    const gateway = await runGateway();
    const { order_id } = await createOrder(gateway, 'in a browser & ünïcode');
    // The page's Content-Security-Policy would not run the test's script.
    const page = await browser.newPage({ bypassCSP: true });
    await page.goto(`${gateway.url}/health/live`);
    await page.addScriptTag({ content: await bundle('connect-page.ts') });
    const sent: (string | undefined)[][] = [];
    page.on('response', (response) => {
      const { pathname } = new URL(response.url());
      sent.push([response.request().method(), pathname.split('/').at(-1), response.headers()['cache-control']]);
    });
    const readOrders = `connectPage.readOrders(...${JSON.stringify([gateway.url, gateway.headers, order_id])})`;
    expect(await page.evaluate(readOrders)).toEqual([
      [order_id, [order_id]],
      [order_id, [order_id]],
    ]);
    const calls = [
      ['GET', 'GetOrder', 'no-store'],
      ['GET', 'ListOrders', 'no-store'],
    ];
    expect(sent).toEqual([...calls, ...calls]);
  },
);

/** A module of this folder and all that it imports, as the script `connectPage`. */
async function bundle(file: string): Promise<string> {
  await using build = await rolldown({
    input: join(import.meta.dirname, file),
    platform: 'browser',
    resolve: { conditionNames: ['@order-gateway/source', 'import', 'browser'] },
  });
  const { output } = await build.generate({ format: 'iife', name: 'connectPage' });
  return output[0].code;
}
