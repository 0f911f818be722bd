import { runQuery } from '@order-gateway/postgres/testing/run-query';
import { expect, test } from 'vitest';
import { auditLogOf, signIn } from '../../helpers/console-visitor.ts';
import { pngOf } from '../../helpers/images.ts';
import { useGateway } from '../../helpers/running-gateway.ts';
import { callJson } from '../../helpers/send-order.ts';

const gateway = useGateway({ hasConsole: true });

/** Sends the brand form as a browser does. A `Buffer` is sent as a file. */
async function send(
  visitor: Awaited<ReturnType<typeof signIn>>,
  fields: Readonly<Record<string, string | Buffer>>,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ status: number; text: string }> {
  const { cookie, formToken } = visitor;
  const body = new FormData();
  for (const [name, value] of Object.entries({ form_token: formToken, ...fields })) {
    if (typeof value === 'string') body.append(name, value);
    else body.append(name, new Blob([Uint8Array.from(value)]), 'logo.png');
  }
  const response = await fetch(`${gateway.url}/console/brand`, {
    method: 'POST',
    body,
    headers: { cookie, 'sec-fetch-site': 'same-origin', ...headers },
    redirect: 'manual',
  });
  return { status: response.status, text: await response.text() };
}

test('the form changes the brand and its logo, and removes the logo', async () => {
  const shop = await gateway.newMerchant();
  const visitor = await signIn(shop);
  const brand = async () => (await callJson(shop, 'GET', '/brand')).body;
  const changed = await send(visitor, { color: '#0b5fff', support_email: 'help@shop.example', logo: pngOf(8, 4) });
  expect(changed.status).toBe(303);
  const expected = { color: '#0b5fff', support_email: 'help@shop.example' };
  expect(await brand()).toEqual({ ...expected, logo_url: expect.stringContaining('/logos/') });
  const { text } = await visitor.get('/brand');
  expect(text).toContain('value="#0b5fff" name="color"');
  expect(text).toContain((await brand()).logo_url);
  // Browsers send an empty file if none was chosen.
  expect((await send(visitor, { ...expected, support_email: '', logo: Buffer.alloc(0) })).status).toBe(303);
  expect(await brand()).toEqual({ color: '#0b5fff', logo_url: expect.any(String) });
  expect((await send(visitor, { color: '#0b5fff', remove_logo: '1' })).status).toBe(303);
  expect(await brand()).toEqual({ color: '#0b5fff' });
  expect((await send(visitor, { payment_instructions: 'Pay at\r\nthe counter' })).status).toBe(303);
  expect(await brand()).toMatchObject({ payment_instructions: 'Pay at\nthe counter' });
  expect((await visitor.get('/brand')).text).toContain('>\nPay at\nthe counter</textarea>');
  const entries = await auditLogOf(shop, 'brand');
  expect(entries).toHaveLength(4);
  for (const { actor, details } of entries) {
    expect([actor, details]).toEqual(['console:Ada', expect.objectContaining({ role: 'manage' })]);
  }
});

test('the page lists who changed the payment instructions, without repetitions', async () => {
  const [shop, other] = [await gateway.newMerchant(), await gateway.newMerchant()];
  const visitor = await signIn(shop);
  const { clientId } = shop.credentials;
  expect((await visitor.get('/brand')).text).not.toContain('Changes to how customers pay');
  await callJson(shop, 'PATCH', '/brand', { payment_instructions: 'IBAN <1>' });
  await send(visitor, { payment_instructions: 'IBAN <1>', color: '#0b5fff' });
  await send(visitor, { payment_instructions: 'IBAN 2' });
  await callJson(other, 'PATCH', '/brand', { payment_instructions: 'IBAN of another shop' });
  await runQuery(
    gateway.databaseUrl,
    `insert into audit_log (actor, action, client_id, details)
     values ('ann@ops-1', 'brand', '${clientId}', '{"payment_instructions": ""}')`,
  );
  const { text } = await visitor.get('/brand');
  const [, list = ''] = /Changes to how customers pay<\/h2>\n<ul>(.*)<\/ul>/s.exec(text) ?? [];
  expect([...list.matchAll(/<bdi>([^<]*)<\/bdi>/g)].map(([, shown]) => shown)).toEqual([
    ...['The operator of the gateway', 'Removed', 'Ada', 'IBAN 2'],
    ...['Your server, with a client secret', 'IBAN &lt;1&gt;'],
  ]);
});

test('an invalid form shows errors beside their fields, keeps the values that were typed, and changes nothing', async () => {
  const shop = await gateway.newMerchant();
  const visitor = await signIn(shop);
  const { status, text } = await send(visitor, { color: 'blue', terms_url: 'https://shop.example/terms' });
  expect([status, text]).toEqual([400, expect.stringMatching(/value="blue" name="color"[^>]+aria-invalid="true"/)]);
  expect(text).toContain('value="https://shop.example/terms"');
  const image = await send(visitor, { logo: Buffer.from('<svg onload="x"/>') });
  expect([image.status, image.text]).toEqual([400, expect.stringMatching(/id="logo-error">[^<]+\(bad_format\)/)]);
  expect((await callJson(shop, 'GET', '/brand')).body).toEqual({});
});

test('a form that is too large, malformed, from another site or from a person with the role `read` changes nothing', async () => {
  const shop = await gateway.newMerchant();
  const visitor = await signIn(shop);
  const clerk = await signIn(shop, { role: 'read' });
  const color = '#0b5fff';
  expect((await send(visitor, { color, logo: Buffer.alloc(1_000_000) })).status).toBe(413);
  const broken = { 'content-type': 'multipart/form-data; boundary=x' };
  expect((await send(visitor, { color }, broken)).status).toBe(400);
  expect((await send(visitor, { color }, { 'content-type': 'application/json' })).status).toBe(415);
  expect((await send(visitor, { color }, { 'sec-fetch-site': 'cross-site' })).status).toBe(403);
  expect((await send(visitor, { color, form_token: clerk.formToken })).status).toBe(403);
  expect((await send(clerk, { color })).status).toBe(403);
  expect((await clerk.get('/brand')).status).toBe(403);
  expect((await callJson(shop, 'GET', '/brand')).body).toEqual({});
});
