import type { Socket } from 'node:net';
import { ConnectionCut, ServerError } from './statement-error.ts';

/** The types of the messages that are written and looked at (PostgreSQL 18, 54.7). */
const types = { bind: code('B'), dataRow: code('D'), error: code('E'), parse: code('P'), ready: code('Z') } as const;

/** Execute for all rows of the unnamed portal, and Sync, which ends the statement's transaction. */
const executeAndSync = Buffer.from('E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04', 'latin1');
const sync = executeAndSync.subarray(10);

/** Above any answer: some numbers, or an error, which holds a whole group where the server is set to log parameters with errors. */
const answerBytesMax = 16_777_216;

/** A type, and a length that counts itself. */
const headBytes = 5;

/** Of a row: the number of its columns, and the length of the first. */
const rowHeadBytes = 6;

/** How ReadyForQuery says that no transaction is open: what was sent is committed. */
const idle = code('I');

/**
 * That a prepared statement is not there any more; and where PostgreSQL finds that it gives other columns since the table was
 * changed (utils/cache/plancache.c). Such a connection is as good as lost: on another one the statement is prepared anew.
 */
const unknownStatement = '26000';
const staleRoutine = 'RevalidateCachedQuery';

interface Pending {
  readonly resolve: (firstColumn: string[]) => void;
  readonly reject: (error: Error) => void;
  readonly firstColumn: string[];
  error: ServerError | undefined;
}

/**
 * Runs prepared statements on a connection that the driver has opened, and that nobody else uses from then on: PostgreSQL's
 * protocol for prepared statements and nothing else of it (PostgreSQL 18, 54.2.3). They may be sent before those before them are
 * answered; each is a transaction of its own. The reasons, and what it saves, are in decision 019.
 */
export class WireConnection {
  readonly #socket: Socket;
  /** In the order in which they were sent, which is that of the answers. */
  readonly #pending: Pending[] = [];
  /** What has come of a message that is not whole. */
  #rest: Buffer | undefined;

  constructor(socket: Socket, onClose: () => void) {
    this.#socket = socket;
    socket.removeAllListeners('data');
    socket.on('data', (bytes: Buffer) => this.#take(bytes));
    socket.once('close', () => {
      for (const { reject, error } of this.#pending.splice(0)) reject(error ?? new ConnectionCut());
      onClose();
    });
  }

  /** Gives a statement a name of up to 63 ASCII characters. */
  async prepare(name: string, text: string): Promise<void> {
    const body = Buffer.from(`${name}\0${text}\0\0\0`);
    const head = Buffer.alloc(headBytes);
    head[0] = types.parse;
    head.writeUInt32BE(body.length + 4, 1);
    await this.#send(Buffer.concat([head, body, sync]));
  }

  /**
   * Runs a statement with its parameters as texts, and gives the first column of its rows, which must not be null. Rejects with
   * {@link ServerError}, or with {@link ConnectionCut} where the connection was lost and nobody knows whether it was carried out.
   */
  run(name: string, parameters: readonly (string | number)[]): Promise<string[]> {
    return this.#send(bound(name, parameters));
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #send(bytes: Buffer): Promise<string[]> {
    return new Promise((resolve, reject) => {
      if (!this.#socket.writable) {
        reject(new ConnectionCut());
        return;
      }
      this.#pending.push({ resolve, reject, firstColumn: [], error: undefined });
      this.#socket.write(bytes);
    });
  }

  #take(piece: Buffer): void {
    const bytes = this.#rest === undefined ? piece : Buffer.concat([this.#rest, piece]);
    let at = 0;
    while (bytes.length - at >= headBytes && !this.#socket.destroyed) {
      const length = bytes.readUInt32BE(at + 1);
      if (length < 4 || length > answerBytesMax) {
        this.destroy();
        return;
      }
      const end = at + 1 + length;
      if (end > bytes.length) break;
      this.#takeMessage(bytes[at], bytes.subarray(at + headBytes, end));
      at = end;
    }
    this.#rest = at < bytes.length ? bytes.subarray(at) : undefined;
  }

  /** Of the other messages none changes what a statement came to: notices, changed settings, the number of rows. */
  #takeMessage(type: number | undefined, body: Buffer): void {
    const [statement] = this.#pending;
    // A server that shuts down may say so between two statements; it ends the connection next.
    if (statement === undefined) return;
    if (type === types.error) {
      statement.error = errorOf(body);
    } else if (type === types.dataRow && body.length >= rowHeadBytes) {
      statement.firstColumn.push(firstColumnOf(body));
    } else if (type === types.ready && body[0] === idle) {
      this.#pending.shift();
      settle(statement);
    } else if (type === types.dataRow || type === types.ready) {
      this.destroy();
    }
  }
}

/**
 * Statements that run on a connection of their own, which is made by `connect` when the first one runs, and again once it was
 * lost.
 */
export function statementsOnWire<Name extends string>(
  connect: () => Promise<Socket>,
  texts: Readonly<Record<Name, string>>,
): (name: Name, parameters: readonly (string | number)[]) => Promise<string[]> {
  let current: Promise<WireConnection> | undefined;
  /** The same once it is open: a statement is spared the waiting for it. */
  let ready: WireConnection | undefined;
  const open = async () => {
    const closed = Promise.withResolvers<void>();
    // Forgotten once: what may be there a moment later is another one, which has to have its socket to itself.
    const forget = () => {
      current = undefined;
      ready = undefined;
      closed.resolve();
    };
    const socket = await connect().catch((error: unknown) => {
      forget();
      throw error;
    });
    const wire = new WireConnection(socket, forget);
    try {
      await Promise.all(Object.entries<string>(texts).map(([name, text]) => wire.prepare(name, text)));
      ready = wire;
      return wire;
    } catch (error) {
      wire.destroy();
      // Until then the driver would take it for open.
      await closed.promise;
      throw error;
    }
  };
  return (name, parameters) => {
    if (ready !== undefined) return ready.run(name, parameters);
    current ??= open();
    return current.then((wire) => wire.run(name, parameters));
  };
}

function code(letter: string): number {
  return letter.charCodeAt(0);
}

/** Bind with everything as text, and what carries it out. */
function bound(name: string, parameters: readonly (string | number)[]): Buffer {
  const texts = parameters.map(String);
  const textsAt = headBytes + 1 + name.length + 1 + 4;
  let length = textsAt + 2 + executeAndSync.length;
  for (const text of texts) length += 4 + Buffer.byteLength(text);
  const bytes = Buffer.allocUnsafe(length);
  bytes[0] = types.bind;
  bytes.writeUInt32BE(length - 1 - executeAndSync.length, 1);
  bytes.write(`\0${name}\0\0\0`, headBytes, 'latin1');
  bytes.writeUInt16BE(texts.length, textsAt - 2);
  let at = textsAt;
  for (const text of texts) {
    const written = bytes.write(text, at + 4);
    bytes.writeUInt32BE(written, at);
    at += 4 + written;
  }
  bytes.writeUInt16BE(0, at);
  bytes.set(executeAndSync, at + 2);
  return bytes;
}

function firstColumnOf(row: Buffer): string {
  return row.toString('utf8', rowHeadBytes, rowHeadBytes + row.readUInt32BE(2));
}

function settle({ resolve, reject, firstColumn, error }: Pending): void {
  if (error === undefined) resolve(firstColumn);
  else if (error.code === unknownStatement || error.routine === staleRoutine) reject(new ConnectionCut());
  else reject(error);
}

/** Fields of a letter and a text each, to a zero (PostgreSQL 18, 54.8). */
function errorOf(body: Buffer): ServerError {
  const fields = new Map<string, string>();
  for (const field of body.toString().split('\0')) fields.set(field.slice(0, 1), field.slice(1));
  return new ServerError(fields.get('M') ?? '', {
    code: fields.get('C') ?? '',
    routine: fields.get('R') ?? '',
    constraint_name: fields.get('n'),
    table_name: fields.get('t'),
    column_name: fields.get('c'),
  });
}
