import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { auditJournal, auditTold } from './audit/audit-journal.ts';
import { openAuditDatabase } from './audit/open-audit-database.ts';
import { asksForHelp, outliveReaders } from './command-line.ts';
import { givenCredentials, type LoadGateway, startLoadGateway } from './load/load-gateway.ts';
import { type LoadOptions, loadUsage, readLoadOptions } from './load/load-options.ts';
import { reportPage } from './load/page/report-page.ts';
import { ProfileFault } from './load/profile.ts';
import { type LoadReport, reportOf } from './load/report.ts';
import { reportTable } from './load/report-table.ts';
import { type LoadRun, runLoad } from './load/run-load.ts';
import { messageOf } from './message-of.ts';

/** How the command ends: all thresholds held; one did not, or no gateway; an argument or file is at fault; Ctrl-C. */
const exitCodes = { passed: 0, failed: 1, bad: 2, interrupted: 130 } as const;

const interrupted = new AbortController();
/** Stops and removes what the run has started. */
let cleanUp = async (): Promise<void> => {};
// A terminal that is closed sends SIGHUP.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    // The second time, the one who asks does not want to wait for the report either.
    if (interrupted.signal.aborted) void cleanUp().finally(() => process.exit(exitCodes.interrupted));
    interrupted.abort(new Error('interrupted before anything was sent'));
  });
}
outliveReaders();

try {
  process.exitCode = await load();
} catch (error) {
  process.stderr.write(`${messageOf(error)}\n`);
  process.exitCode = interrupted.signal.aborted ? exitCodes.interrupted : exitCodes.failed;
}

async function load(): Promise<number> {
  const args = process.argv.slice(2);
  if (asksForHelp(args)) {
    process.stdout.write(loadUsage);
    return exitCodes.passed;
  }
  let options: LoadOptions;
  let given: Given | undefined;
  try {
    options = await readLoadOptions(args);
    await prepareFiles(options);
    given = await giveGateway(options);
  } catch (error) {
    process.stderr.write(`${messageOf(error)}\n${error instanceof ProfileFault ? '' : `\n${loadUsage}`}`);
    return exitCodes.bad;
  }
  const scratch = await mkdtemp(join(tmpdir(), 'order-gateway-journal-'));
  const own = given === undefined ? startLoadGateway(options.settings.merchants, interrupted.signal) : undefined;
  let cleaning: Promise<void> | undefined;
  cleanUp = () => {
    cleaning ??= leaveNothing(scratch, given, own);
    return cleaning;
  };
  try {
    const target = given ?? (await own);
    if (target === undefined) throw new Error('there is no gateway');
    const journalFile = options.journalFile ?? (options.audit ? join(scratch, 'journal.ndjson') : undefined);
    const report = await runAndAudit(options, { ...target, journalFile });
    await tell(report, options);
    if (report.interrupted) return exitCodes.interrupted;
    return report.verdict.passed ? exitCodes.passed : exitCodes.failed;
  } finally {
    await cleanUp();
  }
}

async function leaveNothing(scratch: string, given: Given | undefined, own: Promise<LoadGateway> | undefined) {
  await given?.close();
  // One that did not start has stopped itself.
  await (await own?.catch(() => undefined))?.stop();
  await rm(scratch, { recursive: true });
}

/** Makes the folders of the files that the run leaves, and sees that each can be written, before anything is sent. */
async function prepareFiles({ journalFile, jsonFile, htmlFile }: LoadOptions): Promise<void> {
  for (const file of [journalFile, jsonFile, htmlFile]) {
    if (file === undefined) continue;
    await mkdir(dirname(file), { recursive: true });
    if (file !== journalFile) await (await open(file, 'a')).close();
    else if (existsSync(file)) throw new Error(`${file} is there already, and a journal is of one run`);
  }
}

interface Target {
  readonly httpUrl: string;
  readonly grpcAddress: string;
  readonly credentials: LoadRun['credentials'];
  /** `undefined` where no audit was asked for. */
  readonly databaseUrl: string | undefined;
}

type Given = Target & { close(): Promise<void> };

/** A gateway that runs already, with everything that can be at fault before anything is sent. */
async function giveGateway({ gateway, credentialsFile, settings, audit }: LoadOptions): Promise<Given | undefined> {
  if (gateway === undefined) return undefined;
  const credentials = await givenCredentials(credentialsFile, settings.merchants, process.env);
  const database = audit ? await openAuditDatabase(process.env) : undefined;
  return { ...gateway, credentials, databaseUrl: database?.url, close: async () => database?.close() };
}

async function runAndAudit(
  { settings, audit }: LoadOptions,
  target: Target & { readonly journalFile: string | undefined },
): Promise<LoadReport> {
  const { journalFile, databaseUrl, credentials, httpUrl, grpcAddress } = target;
  const run: LoadRun = { settings, target, credentials, journalFile, progress: process.stderr };
  const { totals, ...facts } = await runLoad(run, interrupted.signal);
  const audited = audit && journalFile !== undefined && databaseUrl !== undefined;
  // What was measured is told all the same; what could not be audited does not pass.
  const counts = audited ? await auditJournal(journalFile, databaseUrl).catch(tellNoAudit) : undefined;
  if (counts !== undefined) process.stdout.write(`${auditTold(counts)}\n`);
  return reportOf(totals, { settings, target: `${httpUrl}, ${grpcAddress}`, ...facts, audit: counts });
}

function tellNoAudit(error: unknown): undefined {
  process.stderr.write(`the audit failed: ${messageOf(error)}\n`);
}

async function tell(report: LoadReport, { jsonFile, htmlFile }: LoadOptions): Promise<void> {
  process.stdout.write(reportTable(report));
  if (jsonFile !== undefined) await writeFile(jsonFile, `${JSON.stringify(report, undefined, 2)}\n`);
  if (htmlFile !== undefined) await writeFile(htmlFile, reportPage(report));
}
