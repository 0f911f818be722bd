import { SaxesParser } from 'saxes';
import { compact } from '../providers/transfer/mod97.ts';
import { amountOf, createCreditOf, dateOf } from './credit.ts';
import { type BookingProblem, type Credit, type Statement, StatementError } from './statement.ts';

/** The messages of ISO 20022, versions 2 to 13. */
const namespaceForm = /^urn:iso:std:iso:20022:tech:xsd:(camt\.05[34])\.001\.(?:0[2-9]|1[0-3])$/;

/** The path of each statement in a message. */
const statementPaths = {
  'camt.053': 'Document/BkToCstmrStmt/Stmt',
  'camt.054': 'Document/BkToCstmrDbtCdtNtfctn/Ntfctn',
};

/**
 * The texts of these elements are kept, by their paths in a message, a statement, an entry (Ntry), or a transaction
 * (TxDtls).
 */
const keptPaths = new Set([
  ...['GrpHdr/CreDtTm', 'Acct/Id/IBAN', 'Acct/Id/Othr/Id', 'ElctrncSeqNb', 'LglSeqNb', 'CreDtTm'],
  ...['Amt', 'CdtDbtInd', 'RvslInd', 'Sts', 'Sts/Cd', 'BookgDt/Dt', 'BookgDt/DtTm', 'ValDt/Dt', 'ValDt/DtTm'],
  ...['AcctSvcrRef', 'AddtlNtryInf', 'NtryDtls/Btch/NbOfTxs', 'BkTxCd/Domn/Fmly/SubFmlyCd'],
  ...['Refs/AcctSvcrRef', 'Refs/EndToEndId', 'AmtDtls/TxAmt/Amt', 'RltdDts/AccptncDtTm', 'AddtlTxInf'],
  ...['RltdPties/Dbtr/Nm', 'RltdPties/Dbtr/Pty/Nm', 'RltdPties/DbtrAcct/Id/IBAN', 'RltdPties/DbtrAcct/Id/Othr/Id'],
  ...['RmtInf/Ustrd', 'RmtInf/Strd/CdtrRefInf/Ref', 'RmtInf/Strd/AddtlRmtInf'],
]);

/** A transaction that gives money back has this element, with any content. */
const returnElement = 'RtrInf';

/**
 * The codes of bookings that give money back: returned, cancelled and reversed transfers and direct debits (ISO 20022,
 * External Bank Transaction Sub-Family). Some banks set nothing else.
 */
const returnCodes = ['RRTN', 'RPCR', 'PRDD', 'UPDD', 'RCDD'];

const messageDepth = 2;
const statementDepth = 3;
const entryDepth = 4;
const transactionDepth = 6;

/** No message is nested this deep, and no text is this long. */
const depthMax = 40;
const textLengthMax = 65_536;

/** Banks write this where they have no reference. */
const isNoReference = (text: string) => /^(NOTPROVIDED|NONREF)?$/i.test(text);

/** Whether a text is the truth value `true` of XML Schema, which has two forms. */
const isTrue = (text: string) => text === 'true' || text === '1';

/** The texts of the kept elements, by their paths. An amount is followed by its currency. */
class Fields extends Map<string, string> {
  /** Returns the text of the first of these paths that has one. */
  first(...paths: readonly string[]): string {
    return paths.map((path) => this.get(path) ?? '').find(Boolean) ?? '';
  }

  /** Adds a text. Free texts of one path are continued, because banks break them at any character. */
  add(path: string, text: string): void {
    const known = this.get(path);
    this.set(path, known === undefined ? text : known + (path === 'RmtInf/Ustrd' ? '' : '\n') + text);
  }

  /** Returns all texts of a path. */
  all(path: string): readonly string[] {
    return this.get(path)?.split('\n') ?? [];
  }

  /** Returns the first amount of these paths. */
  amount(...paths: readonly string[]) {
    const [amount = '', currency = ''] = this.first(...paths).split(' ');
    return { amount, currency };
  }
}

/** Reads the statements of a camt.053 or camt.054 message. */
export async function* readCamt(chunks: AsyncIterable<string>): AsyncGenerator<Statement | Credit> {
  const found: (Statement | Credit)[] = [];
  const parser = openParser((item) => found.push(item));
  for await (const chunk of chunks) {
    parser.write(chunk);
    yield* found.splice(0);
  }
  parser.close();
}

function openParser(emit: (item: Statement | Credit) => void) {
  const parser = new SaxesParser({ xmlns: true });
  const creditOf = createCreditOf();
  const path: string[] = [];
  let namespace = '';
  let kind: keyof typeof statementPaths | undefined;
  let hasStatement = false;
  let text = '';
  let currency = '';
  let account = '';
  // The elements that the parser is in.
  const message = new Fields();
  let statement: Fields | undefined;
  let entry: Fields | undefined;
  let transactions: Fields[] = [];
  let transaction: Fields | undefined;

  const fail = (message: string) => {
    throw new StatementError(`Line ${parser.line}: ${message}`);
  };
  const startStatement = (fields: Fields) => {
    account = compact(fields.first('Acct/Id/IBAN', 'Acct/Id/Othr/Id'));
    if (kind === undefined || account === '') return fail('The statement has no account.');
    const numberText = fields.first('ElctrncSeqNb', 'LglSeqNb');
    const number = /^\d{1,15}$/.test(numberText) ? Number(numberText) : undefined;
    const writtenAt = fields.first('CreDtTm') || message.first('GrpHdr/CreDtTm');
    emit({ is: 'statement', kind, account, number, writtenOn: dateOf(writtenAt) });
    hasStatement = true;
  };
  const keep = (value: string) => {
    const fields = transaction ?? entry ?? statement ?? message;
    const depth = transaction ? transactionDepth : entry ? entryDepth : statement ? statementDepth : messageDepth;
    const key = path.slice(depth).join('/');
    if (keptPaths.has(key)) fields.add(key, path.at(-1) === 'Amt' ? `${value} ${currency}` : value);
  };

  parser.on('error', ({ message }) => fail(`The file is not well-formed XML: ${message.replace(/^[\d:]+ /, '')}`));
  parser.on('doctype', () => fail('The file has a document type declaration.'));
  parser.on('opentag', ({ local, uri, attributes }) => {
    if (path.length === 0) {
      namespace = uri;
      kind = namespaceForm.exec(uri)?.[1] as typeof kind;
      if (kind === undefined) fail('The file is neither camt.053 nor camt.054, versions 02 to 13.');
    }
    const name = uri === namespace ? local : '';
    path.push(name);
    if (path.length > depthMax) fail('The file is nested too deeply.');
    text = '';
    currency = attributes.Ccy?.value ?? '';
    if (path.length === statementDepth && kind !== undefined && path.join('/') === statementPaths[kind]) {
      statement = new Fields();
      account = '';
    } else if (path.length === entryDepth && statement !== undefined && name === 'Ntry') {
      if (account === '') startStatement(statement);
      entry = new Fields();
      transactions = [];
    } else if (path.length === transactionDepth && entry !== undefined && name === 'TxDtls') {
      transaction = new Fields();
      transactions.push(transaction);
    } else if (path.length === transactionDepth + 1 && name === returnElement) transaction?.add(returnElement, name);
  });
  const append = (part: string) => {
    text += part;
    if (text.length > textLengthMax) fail('The file has a text of more than 65,536 characters.');
  };
  parser.on('text', append);
  parser.on('cdata', append);
  parser.on('closetag', () => {
    const value = text.trim();
    if (value !== '') keep(value);
    if (path.length === transactionDepth) transaction = undefined;
    if (path.length === entryDepth && entry !== undefined) {
      for (const credit of creditsOf({ account, entry, transactions, creditOf })) emit(credit);
      entry = undefined;
    }
    if (path.length === statementDepth && statement !== undefined) {
      if (account === '') startStatement(statement);
      statement = undefined;
    }
    path.pop();
    text = '';
  });
  parser.on('end', () => {
    if (!hasStatement) fail('The file has no statement.');
  });
  return parser;
}

interface Entry {
  readonly account: string;
  readonly entry: Fields;
  readonly transactions: readonly Fields[];
  readonly creditOf: ReturnType<typeof createCreditOf>;
}

/** Whether an entry or a transaction gives money back. */
const isReversal = (fields: Fields) =>
  isTrue(fields.first('RvslInd')) ||
  fields.has(returnElement) ||
  returnCodes.includes(fields.first('BkTxCd/Domn/Fmly/SubFmlyCd'));

/**
 * Returns the credits of an entry: one for each transaction of a batch whose transactions add up to the entry,
 * otherwise one for the entry. A reversal is returned regardless of its direction, because it may take a payment back.
 */
function creditsOf({ account, entry, transactions, creditOf }: Entry): Credit[] {
  const hasReversal = [entry, ...transactions].some(isReversal);
  const isCredit = entry.get('CdtDbtInd') === 'CRDT';
  if (entry.first('Sts/Cd', 'Sts') !== 'BOOK' || (!isCredit && !hasReversal)) return [];
  const total = entry.amount('Amt');
  const entryReference = entry.first('AcctSvcrRef');
  const isBatch = transactions.length > 1;
  const count = entry.all('NtryDtls/Btch/NbOfTxs').reduce((sum, number) => sum + Number(number), 0);
  const isComplete = (count || 1) <= Math.max(transactions.length, 1) && (!isBatch || addUp(transactions, total));
  const isSplit = isComplete && isCredit && !isReversal(entry) && transactions.length > 0;
  const wholeProblem: BookingProblem | undefined = hasReversal
    ? 'reversal'
    : isComplete
      ? undefined
      : 'batch_without_details';
  const parts = isSplit ? transactions : [transactions[0] ?? new Fields()];
  const ownReferences = parts.map((fields) => fields.first('Refs/AcctSvcrRef')).filter((text) => !isNoReference(text));
  // A reference that several transactions of a batch have identifies none of them.
  const areOwn = new Set(ownReferences).size === ownReferences.length;
  return parts.map((fields, index) => {
    const ownReference = fields.first('Refs/AcctSvcrRef');
    const isOwn = areOwn && !isNoReference(ownReference) && !(isBatch && ownReference === entryReference);
    const reference = isOwn ? ownReference : isNoReference(entryReference) ? '' : `${entryReference}/${index + 1}`;
    return creditOf({
      account,
      reference,
      // The amount of a single transaction may be in the payer's currency. The bank booked the entry's.
      ...(isBatch && isSplit ? fields.amount('Amt', 'AmtDtls/TxAmt/Amt') : total),
      date: entry.first('BookgDt/Dt', 'BookgDt/DtTm', 'ValDt/Dt', 'ValDt/DtTm'),
      acceptedAt: fields.first('RltdDts/AccptncDtTm'),
      payerName: fields.first('RltdPties/Dbtr/Pty/Nm', 'RltdPties/Dbtr/Nm'),
      payerAccount: fields.first('RltdPties/DbtrAcct/Id/IBAN', 'RltdPties/DbtrAcct/Id/Othr/Id'),
      texts: [
        ...fields.all('RmtInf/Strd/CdtrRefInf/Ref'),
        ...fields.all('RmtInf/Strd/AddtlRmtInf'),
        fields.first('RmtInf/Ustrd'),
        fields.first('Refs/EndToEndId'),
        fields.first('AddtlTxInf'),
        isBatch ? '' : entry.first('AddtlNtryInf'),
      ].filter(Boolean),
      problem: isSplit ? (isReversal(fields) ? 'reversal' : undefined) : wholeProblem,
    });
  });
}

/** Whether the transactions are all credits of the entry's currency that add up to its amount. */
function addUp(transactions: readonly Fields[], total: ReturnType<Fields['amount']>): boolean {
  let sum = 0n;
  for (const fields of transactions) {
    const { amount, currency } = fields.amount('Amt', 'AmtDtls/TxAmt/Amt');
    const hundredths = amountOf(amount);
    if (hundredths === undefined || currency !== total.currency || fields.get('CdtDbtInd') === 'DBIT') return false;
    sum += hundredths;
  }
  return sum === amountOf(total.amount);
}
