import { createServer } from 'node:http';
import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import { runQuery } from '@order-gateway/postgres/testing/run-query';
import { expect, onTestFinished, test } from 'vitest';
import { bind } from '../../../src/runtime/network/listen.ts';
import { newSignInLink, request, signIn } from '../../helpers/console-visitor.ts';
import { runGateway } from '../../helpers/running-gateway.ts';
import { callJson } from '../../helpers/send-order.ts';

test('no action of a person happens if the audit log cannot record it', async () => {
  const gateway = await runGateway({ hasConsole: true, mode: 'test' });
  let requests = 0;
  const receiver = createServer((_, response) => {
    requests += 1;
    response.end();
  });
  onTestFinished(() => void receiver.close());
  const url = `http://127.0.0.1:${await bind(receiver, { port: 0, host: '127.0.0.1' })}/`;
  // No event occurs after the endpoint exists, so nothing is delivered in the meantime.
  const create = (order_id: string) => callJson(gateway, 'POST', '/order', validOrderInput({ order_id }));
  const [{ body: cancelled }, { body: paid }] = [await create('audit-1'), await create('audit-2')];
  const [visitor, leaving] = [await signIn(gateway), await signIn(gateway)];
  await signIn(gateway, { name: 'Bob' });
  await visitor.post('/webhooks', { url });
  await visitor.post('/secrets');
  const link = await newSignInLink(gateway);
  const query = (text: string) => runQuery(gateway.databaseUrl, text);
  const { body } = await callJson(gateway, 'GET', '/webhook_endpoints');
  const endpoint = `/webhooks/${body.endpoints[0].id}`;
  const [[secret], [bob]] = [
    await query('select max(id) as id from client_secrets'),
    await query("select id from console_sessions where name = 'Bob'"),
  ];
  const { order_checksum: _, ...newOrder } = validOrderInput({ order_id: 'audit-3' });
  const texts = Object.entries(newOrder).map(([name, value]) => [name, `${value ?? ''}`]);
  const act = async () => {
    const actions: [string, Record<string, string>?][] = [
      ['/new-order', Object.fromEntries(texts)],
      [`/orders/${cancelled.service_order_id}/cancel`],
      [`/orders/${paid.service_order_id}/simulate`, { outcome: 'pay' }],
      [`${endpoint}/ping`],
      [`${endpoint}/rotate`],
      [`${endpoint}/status`, { status: 'disabled' }],
      [`${endpoint}/delete`],
      ['/webhooks', { url: `${url}other` }],
      ['/secrets'],
      [`/secrets/${secret?.id}/revoke`],
      ['/brand', { support_email: 'help@shop.example' }],
      ['/sessions', { name: 'Cy', role: 'read' }],
      [`/sessions/${bob?.id}/end`],
      ['/sign-out-all'],
    ];
    const statuses: [string, number][] = [
      ['sign-in', (await request(link, { form: {} })).status],
      ['/sign-out', (await leaving.post('/sign-out')).status],
    ];
    for (const [path, form] of actions) statuses.push([path, (await visitor.post(path, form)).status]);
    return statuses;
  };
  /** Returns the content of all tables. A session is marked as used every minute. */
  const allData = async () => {
    const tables = await query(
      "select table_name as name from information_schema.tables where table_schema = 'public'",
    );
    const rows = tables.map(({ name }) => `select '${name}', to_jsonb(entry) - 'last_seen_at' from ${name} entry`);
    return query(rows.join(' union all '));
  };
  const before = await allData();
  await query('alter table audit_log add constraint closed check (false) not valid');
  expect((await act()).filter(([, status]) => status < 500)).toEqual([]);
  expect(await allData()).toEqual(before);
  expect(requests).toBe(0);
  await query('alter table audit_log drop constraint closed');
  expect((await act()).filter(([, status]) => status >= 400)).toEqual([]);
});
