import { createCommand } from '@order-gateway/command';
import { auditErrors, auditJournal, formatAudit } from './audit/audit.ts';
import { exitCodes, runCommand, UsageError, withUsageErrors } from './command/command.ts';
import { openGatewayDatabase } from './gateway/gateway-database.ts';

const command = createCommand(
  'audit-orders',
  'Checks that the database has every acknowledged order of a load run once, with its changes and events.',
)
  .requiredOption('--journal <file>', 'the journal that `load --journal FILE` wrote')
  .addHelpText(
    'after',
    `
Environment: DATABASE_URL or DATA_DIR, as for the gateway (default: the embedded
PostgreSQL in .data).
Exit codes: 0 no error; 1 an error, or a line of the journal cannot be read; 2
nothing could be compared.`,
  );

await runCommand(command, async () => {
  const { journal } = command.opts<{ journal: string }>();
  const database = await withUsageErrors(openGatewayDatabase);
  try {
    const result = await withUsageErrors(() => auditJournal(journal, database.url));
    process.stdout.write(formatAudit(result));
    if (result.acknowledged === 0) throw new UsageError('the journal has no acknowledgement to audit');
    return auditErrors(result) === 0 ? exitCodes.passed : exitCodes.failed;
  } finally {
    await database.close();
  }
});
