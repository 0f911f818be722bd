/** The account of generated statements. */
export const testIban = 'DE89370400440532013000';

/** What differs between the entries of generated statements. */
export interface TestEntry {
  readonly amount?: string;
  readonly currency?: string;
  readonly direction?: 'CRDT' | 'DBIT';
  readonly status?: string;
  readonly date?: string;
  readonly reference?: string;
  /** The elements after the transaction's details, or in place of the default's. */
  readonly transactions?: readonly string[];
  /** Further elements of the entry. */
  readonly extra?: string;
  readonly batch?: string;
}

/** Returns a transaction with a free text. */
export const transaction = (text: string, { payer = 'Erika Mustermann', extra = '' } = {}): string =>
  `<TxDtls>${extra}<RltdPties><Dbtr><Nm>${payer}</Nm></Dbtr></RltdPties><RmtInf><Ustrd>${text}</Ustrd></RmtInf></TxDtls>`;

export function entryXml(entry: TestEntry): string {
  const { amount = '10.00', currency = 'EUR', direction = 'CRDT', status = 'BOOK', date = '2027-01-31' } = entry;
  const reference = entry.reference === undefined ? '' : `<AcctSvcrRef>${entry.reference}</AcctSvcrRef>`;
  const details = `${entry.batch ?? ''}${(entry.transactions ?? [transaction('')]).join('')}`;
  return `<Ntry><Amt Ccy="${currency}">${amount}</Amt><CdtDbtInd>${direction}</CdtDbtInd>${entry.extra ?? ''}<Sts>${status}</Sts><BookgDt><Dt>${date}</Dt></BookgDt>${reference}${details === '' ? '' : `<NtryDtls>${details}</NtryDtls>`}</Ntry>`;
}

interface TestStatement {
  readonly namespace?: string;
  readonly account?: string;
  readonly number?: number;
}

/** Returns the text before and after the entries of a statement. */
export function statementFrame({ namespace = 'camt.053.001.08', account = testIban, number = 1 }: TestStatement = {}) {
  const [message, statement] = namespace.startsWith('camt.054')
    ? ['BkToCstmrDbtCdtNtfctn', 'Ntfctn']
    : ['BkToCstmrStmt', 'Stmt'];
  return [
    `<?xml version="1.0" encoding="UTF-8"?><Document xmlns="urn:iso:std:iso:20022:tech:xsd:${namespace}"><${message}><${statement}><Id>1</Id><ElctrncSeqNb>${number}</ElctrncSeqNb><CreDtTm>2027-02-01T06:00:00Z</CreDtTm><Acct><Id><IBAN>${account}</IBAN></Id></Acct>`,
    `</${statement}></${message}></Document>`,
  ] as const;
}

/** Returns a statement in the form of a bank. */
export function statementXml(entries: readonly TestEntry[], options: TestStatement = {}): string {
  const [start, end] = statementFrame(options);
  return `${start}${entries.map(entryXml).join('\n')}${end}`;
}
