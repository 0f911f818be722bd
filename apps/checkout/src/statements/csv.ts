import { pipeline, Readable } from 'node:stream';
import { type CsvError, parse } from 'csv-parse';
import { compact } from '../providers/transfer/mod97.ts';
import { createCreditOf, dateOf } from './credit.ts';
import { type Credit, type Statement, StatementError } from './statement.ts';

const requiredColumns = ['account', 'date', 'amount', 'currency', 'text'];
const knownColumns = [...requiredColumns, 'payer', 'payer_account', 'end_to_end_id', 'bank_reference', 'accepted_at'];

/** The maximum length of a row. */
const rowLengthMax = 65_536;

/**
 * Reads the credits of a CSV file with the columns `account`, `date` (`YYYY-MM-DD`), `amount` (`-` for debits),
 * `currency` and `text`, and optionally `payer`, `payer_account`, `end_to_end_id`, `bank_reference` and `accepted_at`
 * (RFC 3339). Columns with other names are ignored.
 */
export async function* readCsv(chunks: AsyncIterable<string>): AsyncGenerator<Statement | Credit> {
  const creditOf = createCreditOf();
  let account: string | undefined;
  let line = 1;
  const fail = (message: string) => new StatementError(`Row ${line}: ${message}`);
  for await (const row of rowsOf(chunks)) {
    line += 1;
    const field = (name: string) => (row[name] ?? '').trim();
    const amount = field('amount');
    if (!/^-?\d+(\.\d+)?$/.test(amount)) throw fail('The amount must be a number such as 12.34.');
    if (dateOf(field('date')) !== field('date')) throw fail('The date must be in the form YYYY-MM-DD.');
    const isFirst = account === undefined;
    account ??= compact(field('account'));
    if (!/^[A-Z\d]+$/.test(account) || compact(field('account')) !== account)
      throw fail('Every row must have the same account, of letters and digits.');
    if (isFirst) yield { is: 'statement', kind: 'csv', account };
    if (amount.startsWith('-')) continue;
    yield creditOf({
      account,
      reference: field('bank_reference'),
      amount,
      currency: field('currency').toUpperCase(),
      date: field('date'),
      acceptedAt: field('accepted_at'),
      payerName: field('payer'),
      payerAccount: field('payer_account'),
      texts: [field('text'), field('end_to_end_id')].filter(Boolean),
    });
  }
  if (account === undefined) throw new StatementError('The file is neither XML nor CSV with rows.');
}

async function* rowsOf(chunks: AsyncIterable<string>): AsyncGenerator<Readonly<Record<string, string>>> {
  const parser = parse({
    columns: (names: string[]) => {
      const columns = names.map((name) => name.trim().toLowerCase());
      const missing = requiredColumns.filter((name) => !columns.includes(name));
      if (missing.length > 0)
        throw new StatementError(`The file is neither XML nor CSV with the columns ${missing.join(', ')}.`);
      const twice = knownColumns.find((name) => columns.indexOf(name) !== columns.lastIndexOf(name));
      if (twice !== undefined) throw new StatementError(`The file has two columns ${twice}.`);
      return columns;
    },
    max_record_size: rowLengthMax,
  });
  // The loop below rejects with an error of either stream.
  pipeline(Readable.from(chunks), parser, () => {});
  try {
    yield* parser;
  } catch (error) {
    if (error instanceof StatementError) throw error;
    throw new StatementError(`The file is not valid CSV: ${(error as CsvError).message}`);
  }
}
