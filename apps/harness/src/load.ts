import { existsSync } from 'node:fs';
import { mkdir, mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { GatewayAddresses } from '@order-gateway/fixtures/wire';
import { auditWhenDelivered } from './audit/audit.ts';
import {
  credentialsFromEnvironment,
  exitCodes,
  givenGateway,
  messageOf,
  onEndSignal,
  prepareOutputs,
  runCommand,
  UsageError,
  withUsageErrors,
} from './command/command.ts';
import { openGatewayDatabase } from './gateway/gateway-database.ts';
import { startOwnGateway } from './gateway/own-gateway.ts';
import { openSender } from './load/calls/sender.ts';
import { givenCredentials, type LoadFlags, loadCommand, settingsFrom } from './load/profile/load-command.ts';
import type { LoadSettings } from './load/profile/profile.ts';
import { comparisonSections, readReport } from './load/report/compare.ts';
import { type LoadReport, readEnvironment, reportOf } from './load/report/report.ts';
import { reportText, sectionText } from './load/report/report-text.ts';
import { type LoadRun, runLoad, warmUp } from './load/run/run-load.ts';
import { startWebhookReceiver, type WebhookReceiver } from './webhooks/receiver.ts';

const interrupted = new AbortController();
/** Stops and removes what the run has started. */
const started = new AsyncDisposableStack();
let cleaning: Promise<void> | undefined;
const cleanUp = () => {
  cleaning ??= started.disposeAsync();
  return cleaning;
};

onEndSignal(() => {
  // On the second signal, the report is skipped too.
  if (interrupted.signal.aborted) void cleanUp().finally(() => process.exit(exitCodes.interrupted));
  interrupted.abort(new Error('interrupted before anything was sent'));
});

const command = loadCommand();
await runCommand(command, () => load(command.opts<LoadFlags>()).finally(cleanUp), interrupted.signal);

interface Target extends GatewayAddresses, Pick<LoadRun, 'credentials' | 'checkout'> {
  /** Receives the events of a gateway that this run started. */
  readonly receiver?: WebhookReceiver | undefined;
  /** The database for audits and operators' commands; `undefined` for a running gateway without either. */
  readonly databaseUrl: string | undefined;
}

async function load(flags: LoadFlags): Promise<number> {
  if (flags.compare !== undefined) return compare(flags.compare, flags.html);
  const { audit, ...settings } = await withUsageErrors(() => settingsFrom(flags));
  await withUsageErrors(() => prepareJournal(flags));
  await prepareOutputs(flags.json, flags.html);
  const given = await withUsageErrors(() => givenTarget(flags, settings, audit));
  const target = given ?? (await startTarget(settings));
  const journalFile = flags.journal ?? (audit ? join(await scratchFolder(), 'journal.ndjson') : undefined);
  const { httpUrl, grpcAddress, credentials, checkout, databaseUrl, receiver } = target;
  const sender = openSender(target, settings.connections, databaseUrl);
  const run: LoadRun = { settings, sender, credentials, checkout, journalFile, progress: process.stderr };
  await warmUp(run, interrupted.signal);
  const environment = await readEnvironment(httpUrl, databaseUrl);
  const outcome = await runLoad(run, interrupted.signal);
  const audited =
    audit && journalFile !== undefined && databaseUrl !== undefined
      ? // The measurements are reported even if the audit fails, but the run does not pass.
        await auditWhenDelivered(journalFile, databaseUrl, receiver).catch((error: unknown) => {
          process.stderr.write(`the audit failed: ${messageOf(error)}\n`);
          return undefined;
        })
      : undefined;
  const report = reportOf(outcome, { settings, target: `${httpUrl}, ${grpcAddress}`, environment, audit: audited });
  await writeReports(report, flags);
  if (report.interrupted) return exitCodes.interrupted;
  return report.verdict.passed ? exitCodes.passed : exitCodes.failed;
}

/** Shows two reports side by side. */
async function compare([first = '', second, ...more]: readonly string[], html: string | undefined): Promise<number> {
  if (second === undefined || more.length > 0) throw new UsageError('--compare needs two files');
  await prepareOutputs(html);
  const [a, b] = await withUsageErrors(() => Promise.all([readReport(first), readReport(second)]));
  process.stdout.write(`${comparisonSections(a, b).map(sectionText).join('\n\n')}\n`);
  if (html === undefined) return exitCodes.passed;
  const { comparisonPage } = await import('./load/report/report-page.ts');
  await writeFile(html, comparisonPage(a, b));
  return exitCodes.passed;
}

/** Creates the folder of the journal. Throws if the journal exists. */
async function prepareJournal({ journal }: LoadFlags): Promise<void> {
  if (journal === undefined) return;
  if (existsSync(journal)) throw new Error(`${journal} already exists, and a journal belongs to one run`);
  await mkdir(dirname(journal), { recursive: true });
}

async function givenTarget(flags: LoadFlags, settings: LoadSettings, audit: boolean): Promise<Target | undefined> {
  const gateway = givenGateway(flags);
  if (gateway === undefined) {
    if (flags.credentials === undefined) return undefined;
    throw new Error('--credentials requires --http and --grpc, because a gateway of the run gets new merchants');
  }
  const credentials = givenCredentials(flags.credentials, settings.merchants);
  const checkout = credentialsFromEnvironment('CHECKOUT_');
  const { pay_share, start_share, end_share, report_share } = settings;
  if (pay_share + start_share + end_share + report_share > 0 && checkout === undefined) {
    throw new Error('set CHECKOUT_CLIENT_ID and CHECKOUT_CLIENT_SECRET to record payments');
  }
  const database = audit || settings.fail_share > 0 ? await openGatewayDatabase() : undefined;
  if (database !== undefined) started.defer(database.close);
  return { ...gateway, credentials, checkout, databaseUrl: database?.url };
}

async function startTarget({ merchants, pay_share, cancel_share }: LoadSettings): Promise<Target> {
  const setups = Array.from({ length: merchants }, (_, index) => ({ name: `Load ${index + 1}` }));
  const starting = startOwnGateway(
    [...setups, { name: 'Load checkout', kind: 'checkout', makesRefunds: true }],
    interrupted.signal,
  );
  // A gateway that failed to start has stopped itself.
  started.defer(() => starting.then((gateway) => gateway.stop()).catch(() => {}));
  const gateway = await starting;
  const [credentials, checkout] = [gateway.credentials.slice(0, merchants), gateway.credentials[merchants]];
  if (pay_share + cancel_share === 0) return { ...gateway, credentials, checkout };
  const receiver = await startWebhookReceiver();
  started.defer(receiver.close);
  await gateway.sendWebhooks(merchants, receiver);
  return { ...gateway, credentials, checkout, receiver };
}

async function scratchFolder(): Promise<string> {
  return started.use(await mkdtempDisposable(join(tmpdir(), 'order-gateway-journal-'))).path;
}

async function writeReports(report: LoadReport, { json, html }: LoadFlags): Promise<void> {
  process.stdout.write(reportText(report));
  if (json !== undefined) await writeFile(json, `${JSON.stringify(report, undefined, 2)}\n`);
  if (html === undefined) return;
  // Imported only when needed, because the chart library takes half a second to load.
  const { reportPage } = await import('./load/report/report-page.ts');
  await writeFile(html, reportPage(report));
}
