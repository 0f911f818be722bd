import type { FileHandle } from 'node:fs/promises';
import { readCamt } from './camt.ts';
import { readCsv } from './csv.ts';
import { type Credit, type Statement, StatementError } from './statement.ts';

const bytesMax = 50 * 1_048_576;

/**
 * Reads the statements of a file and their credits, in the order of the file, with flat memory. XML is read as camt.053
 * or camt.054, and everything else as CSV. Rejects with a {@link StatementError}, perhaps after some credits, so a file
 * is read to its end before any of them is used.
 */
export async function* readStatements(file: FileHandle): AsyncGenerator<Statement | Credit> {
  const stat = await file.stat();
  // A pipe can't be read twice.
  if (!stat.isFile()) throw new StatementError('This is not a file.');
  if (stat.size > bytesMax) throw new StatementError('The file is larger than 50 MiB.');
  const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(1_024), position: 0 });
  const isXml = buffer.toString('utf8', 0, bytesRead).trimStart().startsWith('<');
  yield* isXml ? readCamt(textOf(file)) : readCsv(textOf(file));
}

async function* textOf(file: FileHandle): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const decode = (bytes?: Uint8Array) => {
    try {
      return bytes === undefined ? decoder.decode() : decoder.decode(bytes, { stream: true });
    } catch {
      throw new StatementError('The file is not in UTF-8.');
    }
  };
  for await (const bytes of file.createReadStream({ start: 0, autoClose: false })) yield decode(bytes);
  yield decode();
}
