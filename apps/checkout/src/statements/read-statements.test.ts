import { mkdtemp, open, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  entryXml,
  statementFrame,
  statementXml,
  type TestEntry,
  testIban,
  transaction,
} from '../../testing/statements.ts';
import { readCamt } from './camt.ts';
import { readStatements } from './read-statements.ts';
import { type Credit, type Statement, StatementError } from './statement.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'statements-'));
});
afterAll(() => rm(folder, { recursive: true }));

async function readFile(path: string): Promise<(Statement | Credit)[]> {
  await using file = await open(path);
  return await Array.fromAsync(readStatements(file));
}

async function read(content: string | Uint8Array): Promise<(Statement | Credit)[]> {
  const path = join(folder, 'statement');
  await writeFile(path, content);
  return readFile(path);
}

const creditsOf = async (content: string) => (await read(content)).filter((item) => item.is === 'credit');
const readEntries = (...entries: readonly TestEntry[]) => creditsOf(statementXml(entries));

const samples = join(import.meta.dirname, '../../testing/data/statements');
const credit = { amount: 885n, currency: 'EUR', date: '2014-12-31', acceptedAt: undefined, problem: undefined };

test.each([
  ['camt053.v2.minimal.xml', 'NL26VAYB8060476890', [{ ...credit, payer: 'NAME NAME, NL56AGDH9619008421' }]],
  ['camt053.v2.multi.statement.xml', 'NL26VAYB8060476890', [{ ...credit, payer: '' }]],
  ['camt053.v4.xml', 'NL26VAYB8060476890', [{ ...credit, paymentId: 'NL26VAYB8060476890/AAAASESS-FP-CN_98765/01/1' }]],
  ['camt053.v8.xml', 'NL26VAYB8060476890', [{ ...credit, payer: 'NAME NAME, NL56AGDH9619008421' }]],
  ['camt054.v8.xml', 'CH2801234000123456789', []],
  ['camt53.only-Dt-with-DtTm.xml', 'GB33BUKB20201555555555', []],
])('the booked credits of the sample %s are read', async (name, account, credits) => {
  const items = await readFile(join(samples, name));
  expect(items[0]).toMatchObject({ is: 'statement', account, kind: name.includes('54') ? 'camt.054' : 'camt.053' });
  expect(items.filter(({ is }) => is === 'credit')).toEqual(credits.map((fields) => expect.objectContaining(fields)));
});

test('the sample camt053.v2.wrong.xml has no statement', async () => {
  await expect(readFile(join(samples, 'camt053.v2.wrong.xml'))).rejects.toThrow('The file has no statement.');
});

const versions = Array.from({ length: 12 }, (_, index) => `${index + 2}`.padStart(2, '0'));
test.each(versions)('version %s of camt.053 and camt.054 is read', async (version) => {
  for (const kind of ['camt.053', 'camt.054']) {
    const items = await read(statementXml([{}], { namespace: `${kind}.001.${version}` }));
    expect(items).toMatchObject([{ is: 'statement', kind, account: testIban, number: 1 }, { amount: 1000n }]);
  }
});

const reference = 'RF18539007547034';
test.each<[string, TestEntry]>([
  ['in a free text', { transactions: [transaction('Order rf18 5390 0754 7034, thanks')] }],
  ['broken into two lines', { transactions: [transaction('12345 RF18 5390</Ustrd><Ustrd>07547034')] }],
  ['in CDATA', { transactions: [transaction('<![CDATA[<RF18539007547034>]]>')] }],
  [
    'as a structured reference',
    {
      transactions: [
        `<TxDtls><RmtInf><Strd><CdtrRefInf><Ref>X</Ref></CdtrRefInf></Strd><Strd><CdtrRefInf><Ref>${reference}</Ref></CdtrRefInf></Strd></RmtInf></TxDtls>`,
      ],
    },
  ],
  [
    'in the additional information of a transaction',
    { transactions: [`<TxDtls><AddtlTxInf>${reference}</AddtlTxInf></TxDtls>`] },
  ],
  ['as the end-to-end id', { transactions: [`<TxDtls><Refs><EndToEndId>${reference}</EndToEndId></Refs></TxDtls>`] }],
])('the reference is found %s', async (_case, entry) => {
  expect(await readEntries(entry)).toMatchObject([{ references: [reference] }]);
});

test.each<[string, TestEntry]>([
  ['a debit', { direction: 'DBIT' }],
  ['a pending credit', { status: 'PDNG' }],
  ['a pending credit, with a code', { status: '<Cd>PDNG</Cd>' }],
  ['a credit that is only announced', { status: '<Cd>INFO</Cd>' }],
])('%s is no credit', async (_case, entry) => {
  expect(await readEntries(entry)).toEqual([]);
});

const codeXml = (code: string) =>
  `<BkTxCd><Domn><Cd>PMNT</Cd><Fmly><Cd>ICDT</Cd><SubFmlyCd>${code}</SubFmlyCd></Fmly></Domn></BkTxCd>`;
const batchOf = (count: number) => `<Btch><NbOfTxs>${count}</NbOfTxs></Btch>`;
const amountXml = (amount: string, currency = 'EUR') => ({ extra: `<Amt Ccy="${currency}">${amount}</Amt>` });
test.each<[string, TestEntry, string]>([
  ['a reversed debit', { extra: '<RvslInd>true</RvslInd>' }, 'reversal'],
  ['a reversed credit', { direction: 'DBIT', extra: '<RvslInd>true</RvslInd>' }, 'reversal'],
  [
    'a returned transfer',
    { transactions: [transaction('', { extra: '<RtrInf><Rsn><Cd>AC04</Cd></Rsn></RtrInf>' })] },
    'reversal',
  ],
  ['a reversal with a number as its truth value', { extra: '<RvslInd>1</RvslInd>' }, 'reversal'],
  ['a returned transfer without a reason', { transactions: [transaction('', { extra: '<RtrInf/>' })] }, 'reversal'],
  ['a returned transfer that only its code tells', { extra: codeXml('RRTN') }, 'reversal'],
  ['a transaction with such a code', { transactions: [transaction('', { extra: codeXml('RPCR') })] }, 'reversal'],
  ['another currency', { currency: 'CHF' }, 'other_currency'],
  ['three decimals', { amount: '10.001' }, 'unclear_amount'],
  ['an impossible date', { date: '2027-02-30' }, 'no_date'],
  ['a date in the year 0000', { date: '0000-01-31' }, 'no_date'],
  ['a batch without transactions', { batch: batchOf(2), transactions: [] }, 'batch_without_details'],
  ['a batch with one of two', { batch: batchOf(2), transactions: [transaction('')] }, 'batch_without_details'],
  [
    'a batch that does not add up',
    { transactions: [transaction('', amountXml('4.00')), transaction('', amountXml('5.99'))] },
    'batch_without_details',
  ],
  [
    'a batch with a debit',
    {
      transactions: ['CRDT', 'DBIT'].map((direction) =>
        transaction('', { extra: `<Amt Ccy="EUR">5.00</Amt><CdtDbtInd>${direction}</CdtDbtInd>` }),
      ),
    },
    'batch_without_details',
  ],
  [
    'a batch of two currencies',
    { transactions: [transaction('', amountXml('4.00')), transaction('', amountXml('6.00', 'SEK'))] },
    'batch_without_details',
  ],
])('%s is for a person to look at', async (_case, entry, problem) => {
  expect(await readEntries(entry)).toMatchObject([{ problem }]);
});

test('the transactions of a batch are single payments', async () => {
  const transactions = [
    transaction(reference, amountXml('4.00')),
    transaction('', { extra: `<Refs><AcctSvcrRef>OWN</AcctSvcrRef></Refs>${amountXml('6.00').extra}` }),
  ];
  expect(await readEntries({ reference: 'B1', batch: batchOf(2), transactions })).toMatchObject([
    { amount: 400n, paymentId: `${testIban}/B1/1`, references: [reference], problem: undefined },
    { amount: 600n, paymentId: `${testIban}/OWN`, references: [], problem: undefined },
  ]);
});

test('a returned transfer in a batch is for a person to look at, and the other transactions are single payments', async () => {
  const extra = (more: string) => ({ extra: `${amountXml('5.00').extra}${more}` });
  const transactions = [transaction(reference, extra('')), transaction('', extra('<RtrInf/>'))];
  const parts = [
    { amount: 500n, references: [reference], problem: undefined },
    { amount: 500n, problem: 'reversal' },
  ];
  expect(await readEntries({ batch: batchOf(2), transactions })).toMatchObject(parts);
  expect(await readEntries({ batch: batchOf(3), transactions })).toMatchObject([
    { amount: 1000n, problem: 'reversal' },
  ]);
});

test.each([
  ['with', 'B1', [`${testIban}/B1/1`, `${testIban}/B1/2`]],
  ['without', undefined, [expect.stringMatching(/-1$/), expect.stringMatching(/-2$/)]],
])(
  'transactions that share a reference differ by their position, %s a reference of the batch',
  async (_case, entryReference, ids) => {
    const extra = `<Refs><AcctSvcrRef>SHARED</AcctSvcrRef></Refs>${amountXml('5.00').extra}`;
    const entry = { transactions: [transaction('', { extra }), transaction('', { extra })] };
    const found = await readEntries({ ...entry, ...(entryReference && { reference: entryReference }) });
    expect(found.map(({ paymentId }) => paymentId)).toEqual(ids);
  },
);

test.each([
  ['of 65 characters', 'B'.repeat(65)],
  ['with a control character', 'B\u0085'],
])('a reference of the bank %s identifies no payment', async (_case, text) => {
  const [found] = await readEntries({ reference: text });
  expect(found?.paymentId).toMatch(new RegExp(`^${testIban}/[\\w-]{32}-1$`));
});

test('a statement has the number and the time of its message if it has no others', async () => {
  const content = statementXml([{}], { number: 7 })
    .replaceAll('ElctrncSeqNb', 'LglSeqNb')
    .replace(/<CreDtTm>.*<\/CreDtTm>/, '')
    .replace('<Stmt>', '<GrpHdr><CreDtTm>2027-02-03T06:00:00Z</CreDtTm></GrpHdr><Stmt>');
  expect((await read(content))[0]).toMatchObject({ number: 7, writtenOn: '2027-02-03' });
});

test('a transaction in the currency of the payer has the amount of its booking', async () => {
  expect(await readEntries({ transactions: [transaction('', amountXml('100', 'SEK'))] })).toMatchObject([
    { amount: 1000n, currency: 'EUR', problem: undefined },
  ]);
});

test.each([
  ['2027-01-29T23:59:59.123456789+01:00', '2027-01-29T22:59:59.123Z'],
  ['2027-01-29T23:59:59Z', '2027-01-29T23:59:59.000Z'],
  ['2027-01-29T23:59:59', undefined],
  ['+099999-01-29T23:59:59Z', undefined],
  ['0000-01-29T23:59:59Z', undefined],
  ['9999-12-31T23:59:59-01:00', undefined],
  ['Friday, 29 January 2027 The 23:59 Z', undefined],
])('the acceptance time %s is %s', async (time, acceptedAt) => {
  const extra = `<RltdDts><AccptncDtTm>${time}</AccptncDtTm></RltdDts>`;
  const [found] = await readEntries({ transactions: [transaction('', { extra })] });
  expect([found?.acceptedAt?.toISOString(), found?.date]).toEqual([acceptedAt, '2027-01-31']);
});

test('equal credits without a reference differ by their number, in every file with both', async () => {
  const entries = [{}, {}, { amount: '11.00' }, { reference: 'NOTPROVIDED' }];
  const ids = (await readEntries(...entries)).map(({ paymentId }) => paymentId);
  expect(new Set(ids).size).toBe(4);
  expect(ids.map((id) => id.split('-').at(-1))).toEqual(['1', '2', '1', '3']);
  expect((await readEntries({ amount: '12.00' }, ...entries)).slice(1).map(({ paymentId }) => paymentId)).toEqual(ids);
});

test('a message whose elements have a prefix is read', async () => {
  const prefixed = statementXml([{}])
    .replaceAll(/<(\/?)(?=[A-Z])/g, '<$1c:')
    .replace('xmlns=', 'xmlns:c=');
  expect(await creditsOf(prefixed)).toHaveLength(1);
});

const [start, end] = statementFrame();
const withDoctype = (doctype: string, text: string) =>
  statementXml([{ transactions: [transaction(text)] }]).replace('?>', `?>${doctype}`);
test.each<[string, string, string]>([
  [
    'an external entity',
    withDoctype('<!DOCTYPE Document [<!ENTITY x SYSTEM "file:///etc/passwd">]>', '&x;'),
    'type declaration',
  ],
  ['an external DTD', withDoctype('<!DOCTYPE Document SYSTEM "http://127.0.0.1:1/a.dtd">', ''), 'type declaration'],
  ['entities that grow', withDoctype('<!DOCTYPE D [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]>', '&b;'), 'type declaration'],
  ['an unknown entity', statementXml([{ transactions: [transaction('&x;')] }]), 'not well-formed'],
  ['a missing end', `${start}${entryXml({})}`, 'not well-formed'],
  ['a wrong end tag', `${start}</Ntry>${end}`, 'not well-formed'],
  ['endless nesting', `${start}${'<a>'.repeat(50)}`, 'nested too deep'],
  ['an endless text', `${start}<Id>${'1'.repeat(200_000)}</Id>${end}`, 'more than 65,536 characters'],
  ['no account', statementXml([{}]).replace(testIban, ' '), 'no account'],
  ['a page', '<!doctype html><title>Sign in</title>', 'not well-formed'],
  ['camt.052', statementXml([{}], { namespace: 'camt.052.001.08' }), 'neither camt.053 nor camt.054'],
  ['version 1', statementXml([{}], { namespace: 'camt.053.001.01' }), 'neither camt.053 nor camt.054'],
  ['version 14', statementXml([{}], { namespace: 'camt.053.001.14' }), 'neither camt.053 nor camt.054'],
  ['MT940', ':20:STARTUMS\n:25:10020030/1234567\n', 'columns account, date, amount, currency, text'],
  ['nothing', '', 'neither XML nor CSV'],
])('a file with %s is rejected', async (_case, content, message) => {
  await expect(read(content)).rejects.toThrow(StatementError);
  await expect(read(content)).rejects.toThrow(message);
});

test('a file in another encoding is rejected', async () => {
  await expect(read(Buffer.from(statementXml([{ transactions: [transaction('Käse')] }]), 'latin1'))).rejects.toThrow(
    'The file is not in UTF-8.',
  );
});

test('a file of more than 50 MiB is rejected before it is read', async () => {
  const path = join(folder, 'large');
  await writeFile(path, start);
  await truncate(path, 50 * 1_048_576 + 1);
  await expect(readFile(path)).rejects.toThrow('The file is larger than 50 MiB.');
});

test('a folder is rejected as a file, so that those beside it are read', async () => {
  await expect(readFile(folder)).rejects.toThrow(new StatementError('This is not a file.'));
});

const csv = (...rows: readonly string[]) => `Account,Date,Amount,Currency,Payer,Text,Note\n${rows.join('\n')}\n`;

test('credits of a CSV file are read', async () => {
  const rows = [
    'DE89 3704 0044 0532 0130 00,2027-01-31,10.00,EUR,"Mustermann, Erika","RF18 5390 ""0754"" 7034",x',
    `${testIban},2027-01-31,-5.00,EUR,Rent,,`,
    `${testIban},2027-01-30,7,eur,,RF18539007547034,`,
  ];
  expect(await read(`\uFEFF${csv(...rows).replaceAll('\n', '\r\n')}`)).toMatchObject([
    { is: 'statement', kind: 'csv', account: testIban },
    { amount: 1000n, payer: 'Mustermann, Erika', references: [] },
    { amount: 700n, currency: 'EUR', date: '2027-01-30', references: [reference], problem: undefined },
  ]);
});

test('a booking of nothing does not keep the others of a CSV file from being read', async () => {
  const rows = [`${testIban},2027-01-31,0.00,EUR,,Notice,`, `${testIban},2027-01-31,7,EUR,,,`];
  expect((await read(csv(...rows))).slice(1)).toMatchObject([{ problem: 'unclear_amount' }, { amount: 700n }]);
});

test.each([
  ['a grouped amount', `${testIban},2027-01-31,"1,000.00",EUR,,,`, 'Row 2: The amount'],
  ['another date', `${testIban},31.01.2027,1.00,EUR,,,`, 'Row 2: The date'],
  ['a missing column', `${testIban},2027-01-31,1.00`, 'The file is not valid CSV'],
  ['an open quote', `${testIban},2027-01-31,1.00,EUR,"x,,`, 'The file is not valid CSV'],
  ['an endless row', `${testIban},2027-01-31,1.00,EUR,,${'x'.repeat(70_000)},`, 'The file is not valid CSV'],
  ['an account that is no number', `\0,2027-01-31,1.00,EUR,,,`, 'Row 2: Every row'],
  ['a second account', `${testIban},2027-01-31,1,EUR,,,\nNL91ABNA0417164300,2027-01-31,1,EUR,,,`, 'Row 3: Every row'],
])('a CSV file with %s is rejected', async (_case, rows, message) => {
  await expect(read(csv(rows))).rejects.toThrow(message);
});

test('a CSV file with two columns of one name is rejected', async () => {
  await expect(read(`Text,${csv('a,b,c,d,e,f,g,h')}`)).rejects.toThrow('two columns text');
});

test('a long file is read as it arrives, in constant memory', async () => {
  setFlagsFromString('--expose-gc');
  const collectGarbage: () => void = runInNewContext('gc');
  const heapBytes = () => {
    collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  const entries = 20_000;
  let written = 0;
  async function* chunks() {
    yield start;
    for (; written < entries; written += 1) yield entryXml({ reference: `R${written}` });
    yield end;
  }
  let count = 0;
  let heapBefore = 0;
  for await (const item of readCamt(chunks())) {
    if (item.is === 'credit') count += 1;
    if (count === 1) expect(written).toBeLessThan(10);
    if (count === entries / 10) heapBefore = heapBytes();
  }
  expect(count).toBe(entries);
  // The file has 6 MB, and its credits take more.
  expect(heapBytes() - heapBefore).toBeLessThan(1_000_000);
});
