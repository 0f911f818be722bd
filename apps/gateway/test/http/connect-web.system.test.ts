import { join } from 'node:path';
import { rolldown } from 'rolldown';
import { expect, test } from 'vitest';
import { describeInBrowser } from '../../../../tools/browser.ts';
import { runGateway } from '../helpers/running-gateway.ts';
import { createOrder } from '../helpers/send-order.ts';

await describeInBrowser('connect-web', (browser) => {
  test('reads orders with GET from a page of the same origin', async () => {
    const gateway = await runGateway();
    const { order_id } = await createOrder(gateway, 'in a browser & ünïcode');
    // The page's Content-Security-Policy would block the test's script.
    const page = await browser.newPage({ bypassCSP: true });
    await page.goto(`${gateway.url}/health/live`);
    await page.addScriptTag({ content: await bundle('connect-page.ts') });
    const responses: (string | undefined)[][] = [];
    page.on('response', (response) => {
      const { pathname } = new URL(response.url());
      responses.push([response.request().method(), pathname.split('/').at(-1), response.headers()['cache-control']]);
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
    expect(responses).toEqual([...calls, ...calls]);
  });
});

/** Bundles a module of this folder with its imports, as a script that defines `connectPage`. */
async function bundle(file: string): Promise<string> {
  await using build = await rolldown({
    input: join(import.meta.dirname, file),
    platform: 'browser',
    resolve: { conditionNames: ['@order-gateway/source', 'import', 'browser'] },
  });
  const { output } = await build.generate({ format: 'iife', name: 'connectPage' });
  return output[0].code;
}
