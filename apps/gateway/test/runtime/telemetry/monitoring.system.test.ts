import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parser } from '@prometheus-io/lezer-promql';
import { beforeAll, expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import { missing, mustSkip } from '../../../../../tools/skip-if-missing.ts';
import { waitLimitMs } from '../../../../../tools/test-limits.ts';
import { giveSigningSecret, scrape, useGateway } from '../../helpers/running-gateway.ts';
import { callJson, createOrder } from '../../helpers/send-order.ts';
import { startWebhookReceiver } from '../../helpers/webhook-receiver.ts';
import { brokenFacts } from '../../stability/facts.ts';

const folder = join(import.meta.dirname, '../../../../../deploy/monitoring');

/** The labels of each metric, and of each histogram series, that a gateway exports once all of its parts are in use. */
let metrics: ReadonlyMap<string, ReadonlySet<string>>;

const gateway = useGateway();
beforeAll(async () => {
  const receiver = await startWebhookReceiver();
  await giveSigningSecret(gateway.databaseUrl, gateway.credentials.clientId, receiver.url);
  await createOrder(gateway, 'seen');
  await callJson(gateway, 'POST', '/order/seen/cancel');
  // The series of an attempt that has not ended do not exist yet.
  await vi.waitUntil(
    async () => (await scrape(gateway)).includes('order_gateway_webhook_delay_seconds_bucket'),
    waitLimitMs,
  );
  metrics = labelsOf(await scrape(gateway));
  return receiver.close;
});

test('every metric of the last release still exists, with its labels', async () => {
  const facts = [...metrics]
    .filter(([name]) => name.startsWith('order_gateway_'))
    .flatMap(([name, labels]) => [...labels].map((label) => `${name} ${label}`));
  expect(await brokenFacts('metrics', facts)).toEqual([]);
});

function labelsOf(scraped: string): Map<string, Set<string>> {
  // Prometheus adds `job` and `instance` to every series, and creates `up` for every target.
  const found = new Map([
    ['up', new Set(['job', 'instance'])],
    // Only a gateway with workers exports the first of these, and only a gateway with TLS exports the second.
    ['order_gateway_worker_up', new Set(['job', 'instance', 'worker'])],
    ['x509_cert_not_after', new Set(['job', 'instance'])],
    // The checkout's, whose own test scrapes them.
    ['order_gateway_checkout_unfinished_seconds', new Set(['job', 'instance'])],
    ['order_gateway_checkout_authorisation_seconds', new Set(['job', 'instance'])],
    ['order_gateway_checkout_differences_total', new Set(['job', 'instance'])],
    // The metrics of blackbox_exporter, postgres_exporter and node_exporter.
    ['probe_success', new Set(['job', 'instance'])],
    ['pg_up', new Set(['job', 'instance'])],
    ['probe_ssl_earliest_cert_expiry', new Set(['job', 'instance'])],
    ['pg_stat_archiver_failed_count', new Set(['job', 'instance', 'server'])],
    ['pg_stat_archiver_last_archive_age', new Set(['job', 'instance', 'server'])],
    ['pg_stat_replication_pg_wal_lsn_diff', new Set(['job', 'instance', 'server', 'application_name'])],
    ['node_filesystem_avail_bytes', new Set(['job', 'instance', 'device', 'fstype', 'mountpoint'])],
    ['node_filesystem_size_bytes', new Set(['job', 'instance', 'device', 'fstype', 'mountpoint'])],
  ]);
  for (const [, name = '', labels = ''] of scraped.matchAll(/^([a-z_]+)(?:\{(.*)\})? /gm)) {
    const names = [...labels.matchAll(/([a-z_]+)="/g)].map(([, label = '']) => label);
    found.set(name, new Set(['job', 'instance', ...names]));
  }
  return found;
}

/** Returns the names of the metrics and labels in a query. Throws an error if the query is not PromQL. */
function namesIn(query: string): { readonly names: string[]; readonly labels: string[] } {
  const text = query.replaceAll('$__rate_interval', '5m');
  const names: string[] = [];
  const labels: string[] = [];
  parser.parse(text).iterate({
    enter({ type, from, to, node }) {
      if (type.isError) throw new Error(`not PromQL at ${from}: ${text}`);
      if (type.name === 'Identifier' && node.parent?.name === 'VectorSelector') names.push(text.slice(from, to));
      if (type.name === 'LabelName') labels.push(text.slice(from, to));
    },
  });
  return { names, labels };
}

function expectNamesToExist(query: string): void {
  const { names, labels } = namesIn(query);
  expect(names).not.toEqual([]);
  for (const name of names) expect([...metrics.keys()], query).toContain(name);
  expect(
    names.flatMap((name) => [...(metrics.get(name) ?? [])]),
    query,
  ).toEqual(expect.arrayContaining(labels));
}

const { groups } = parse(await readFile(join(folder, 'alerts.yml'), 'utf8'));
const rules: { alert: string; expr: string; annotations: { runbook_url: string } }[] = groups.flatMap(
  ({ rules }: { rules: object[] }) => rules,
);

test('every alert names metrics and labels that exist', () => {
  expect(rules.length).toBeGreaterThan(5);
  for (const { expr } of rules) expectNamesToExist(expr);
});

test('each alert links to its runbook in docs/production.md, which has no other runbooks', async () => {
  const page = await readFile(join(folder, '../../docs/production.md'), 'utf8');
  const described = [...page.matchAll(/^### (\w+)\n\n\S/gm)].map(([, heading]) => heading);
  expect(described).toEqual(rules.map(({ alert }) => alert));
  for (const { alert, annotations } of rules) {
    expect(annotations.runbook_url).toMatch(new RegExp(`/production\\.md#${alert.toLowerCase()}$`));
  }
});

const cannotTest = mustSkip('the rule tests of the alerts', missing('promtool'));

/** Runs promtool. Returns its output; rejects if it finds an error. */
async function promtool(args: readonly string[], input = ''): Promise<string> {
  const running = promisify(execFile)('promtool', args, { cwd: folder });
  running.child.stdin?.end(input);
  const { stdout, stderr } = await running;
  return stdout + stderr;
}

test.skipIf(cannotTest)('promtool tests each alert, and finds nothing wrong in the rules', async () => {
  const { tests } = parse(await readFile(join(folder, 'alerts.test.yml'), 'utf8'));
  expect(tests.map(({ name }: { name: string }) => name)).toEqual(rules.map(({ alert }) => alert));
  await promtool(['check', 'rules', '--lint-fatal', 'alerts.yml']);
  await promtool(['test', 'rules', 'alerts.test.yml']);
});

test.skipIf(cannotTest)('promtool finds nothing wrong in the metrics', async () => {
  expect(await promtool(['check', 'metrics'], await scrape(gateway))).toBe('');
});

test('every panel of the dashboard names metrics and labels that exist', async () => {
  const { panels } = JSON.parse(await readFile(join(folder, 'dashboard.json'), 'utf8'));
  const targets: { expr: string }[] = panels.flatMap(({ targets }: { targets: object[] }) => targets);
  expect(targets.length).toBeGreaterThan(10);
  for (const { expr } of targets) expectNamesToExist(expr);
});

test('the check rejects unknown metrics, unknown labels and invalid PromQL', () => {
  expect(() => expectNamesToExist('rate(order_gateway_calls_total[5m])')).toThrow();
  expect(() => expectNamesToExist('sum by (merchant) (order_gateway_memory_bytes)')).toThrow();
  expect(() => expectNamesToExist('sum by (')).toThrow();
});
