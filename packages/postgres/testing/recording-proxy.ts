import { type DatabaseProxy, startDatabaseProxy } from './database-proxy.ts';

/** A run of a prepared statement. */
export interface RecordedRun {
  readonly text: string;
  /** The values in the text format. */
  readonly values: readonly (string | null)[];
}

/** A proxy that records what clients send. */
export interface RecordingProxy extends DatabaseProxy {
  /** The text of every statement, once for each time that it was sent. */
  readonly texts: readonly string[];
  /** The runs of prepared statements. */
  readonly runs: readonly RecordedRun[];
}

/** Starts a proxy that records statements and their values (PostgreSQL 18, 54.7: Parse, Bind and Query). */
export async function startRecordingProxy(databaseUrl: string): Promise<RecordingProxy> {
  const texts: string[] = [];
  const runs: RecordedRun[] = [];
  const proxy = await startDatabaseProxy(databaseUrl, (client, database) => {
    const prepared = new Map<string, string>();
    let bytes = Buffer.alloc(0);
    // The first message has no type.
    let typeBytes = 0;
    client.on('data', (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk]);
      while (bytes.length >= typeBytes + 4) {
        const length = typeBytes + bytes.readUInt32BE(typeBytes);
        if (bytes.length < length) break;
        const [type, body] = [typeBytes === 1 ? String.fromCharCode(bytes[0] ?? 0) : '', bytes.subarray(5, length)];
        const [first = '', second = ''] = body.toString().split('\0', 2);
        if (type === 'Q') texts.push(first);
        if (type === 'P') {
          texts.push(second);
          prepared.set(first, second);
        }
        // A Bind message names a portal and a statement.
        if (type === 'B') runs.push({ text: prepared.get(second) ?? '', values: valuesOf(body, first, second) });
        bytes = bytes.subarray(length);
        typeBytes = 1;
      }
    });
    client.pipe(database).pipe(client);
  });
  return { ...proxy, texts, runs };
}

function valuesOf(body: Buffer, portal: string, statement: string): (string | null)[] {
  let offset = Buffer.byteLength(portal) + Buffer.byteLength(statement) + 2;
  offset += 2 + 2 * body.readInt16BE(offset);
  const values: (string | null)[] = [];
  const count = body.readInt16BE(offset);
  offset += 2;
  while (values.length < count) {
    const length = body.readInt32BE(offset);
    offset += 4;
    values.push(length < 0 ? null : body.toString('utf8', offset, offset + length));
    offset += Math.max(0, length);
  }
  return values;
}
