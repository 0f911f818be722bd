import { parseArgs } from 'node:util';
import { auditJournal, auditTold } from './audit/audit-journal.ts';
import { faultsIn } from './audit/hold-journal.ts';
import { openAuditDatabase } from './audit/open-audit-database.ts';
import { asksForHelp } from './command-line.ts';
import { messageOf } from './message-of.ts';

/** How the command ends: everything is there; something is not; nothing could be held against anything. */
const exitCodes = { clean: 0, faulty: 1, bad: 2 } as const;

const usage = `Holds the journal of a load run against the database: every acknowledged order must be there once, unchanged.

pnpm audit-orders --journal FILE

The database is the gateway's: DATABASE_URL, or the embedded PostgreSQL in DATA_DIR (.data/ unless told). Ends with 0 when all
are, 1 when one is not or a line of the journal cannot be read, 2 when there was nothing to hold against the database, or no
database.
`;

try {
  process.exitCode = await audit();
} catch (error) {
  process.stderr.write(`${messageOf(error)}\n`);
  process.exitCode = exitCodes.bad;
}

async function audit(): Promise<number> {
  const args = process.argv.slice(2);
  if (asksForHelp(args)) {
    process.stdout.write(usage);
    return exitCodes.clean;
  }
  const { journal } = parseArgs({ args, options: { journal: { type: 'string' } } }).values;
  if (journal === undefined) {
    process.stderr.write(usage);
    return exitCodes.bad;
  }
  const database = await openAuditDatabase(process.env);
  try {
    const counts = await auditJournal(journal, database.url);
    process.stdout.write(auditTold(counts));
    if (counts.acknowledged === 0) throw new Error('the journal holds no acknowledgement to audit');
    return faultsIn(counts) === 0 ? exitCodes.clean : exitCodes.faulty;
  } finally {
    await database.close();
  }
}
