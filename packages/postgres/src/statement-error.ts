/** A statement did not answer in time. Whether it was carried out is not known. */
export class StatementTimeout extends Error {
  override name = 'StatementTimeout';
}

/** The connection of a statement was given up, as it or another of its client was lost. Whether it was carried out is not known. */
export class ConnectionCut extends Error {
  override name = 'ConnectionCut';
}

/** What the driver's errors have, too: the SQLSTATE, where in the server it came up, and the names of what was broken. */
interface ServerErrorFields {
  readonly code: string;
  readonly routine: string;
  readonly constraint_name: string | undefined;
  readonly table_name: string | undefined;
  readonly column_name: string | undefined;
}

/** An error that the database told. Its message may hold values. */
export class ServerError extends Error implements ServerErrorFields {
  override name = 'ServerError';
  readonly code: string;
  readonly routine: string;
  readonly constraint_name: string | undefined;
  readonly table_name: string | undefined;
  readonly column_name: string | undefined;

  constructor(message: string, { code, routine, constraint_name, table_name, column_name }: ServerErrorFields) {
    super(message);
    this.code = code;
    this.routine = routine;
    this.constraint_name = constraint_name;
    this.table_name = table_name;
    this.column_name = column_name;
  }
}

/**
 * The database did not do what it was asked for, and no caller can help it. Holds no SQL and no values, which may be a
 * customer's: the code and the names of what was broken are enough to find it.
 */
export class DatabaseFault extends Error {
  override name = 'DatabaseFault';
}

/** What a failed statement means to a caller. */
export type StatementFailure = 'unavailable' | 'overloaded';

/** Of postgres.js, and of Node.js where it tried several addresses of a host. */
const lostConnection = new Set([
  'CONNECTION_CLOSED',
  'CONNECTION_DESTROYED',
  'CONNECTION_ENDED',
  'CONNECT_TIMEOUT',
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ETIMEDOUT',
]);

/** The system's own errors name the call: there may be no host, no route, no socket's file, no file descriptor left. */
const socketCall = /^(connect|getaddrinfo|read|write|shutdown)$/;

/** What Node.js calls what is wrong with a certificate, or with how a connection is secured (its manual, "X509 certificate error codes"). */
const notSecured = /^ERR_(SSL|TLS)_|CERT|CRL|^(UNABLE_TO|INVALID)_|^HOSTNAME_MISMATCH$/;

/**
 * SQLSTATEs after which the same order may be sent again (PostgreSQL 18, appendix A): connection exceptions, insufficient
 * resources, operator intervention such as a shutdown or a statement timeout, a server in recovery or turned read-only by a
 * failover, time-outs of transactions and locks, deadlocks and serialization failures, input and output errors.
 */
const passingState = /^(08...|53...|57...|25006|25P0[34]|55P03|40001|40P01|58030)$/;

/**
 * SQLSTATEs after which a connection is of no more use: connection exceptions, shutdowns, time-outs that end it, and a session
 * that is read-only, as another one may lead to where it is not.
 */
const noMoreUse = /^(08...|57P0[1-5]|25006|25P0[34])$/;

/** SQLSTATEs with which the server or a pooler turns a connection away: whose message names no more than what is in its URL. */
const turnedAway = /^(08P01|28...|3D000|42704)$/;

const tooManyConnections = '53300';
const lockNotAvailable = '55P03';

/** Sorts an error of the driver or of Drizzle; `undefined` for one that is a fault of ours, to be thrown on. */
export function statementFailure(error: unknown): StatementFailure | undefined {
  if (isGivenUp(error)) return 'unavailable';
  const cause = rootCause(error);
  if (codeOf(cause) === tooManyConnections) return 'overloaded';
  return hasNoConnection(cause) || passingState.test(codeOf(cause)) ? 'unavailable' : undefined;
}

/** Whether a statement failed because its connection died, or because it may have. */
export function isConnectionLost(error: unknown): boolean {
  if (isGivenUp(error)) return true;
  const cause = rootCause(error);
  // After what is not secured the driver leaves its next statement waiting, too.
  return hasNoConnection(cause) || notSecured.test(codeOf(cause)) || noMoreUse.test(codeOf(cause));
}

/** The same error without SQL and values: what may leave this package and reach a log. */
export function withoutValues(error: unknown): Error {
  if (isGivenUp(error) || error instanceof DatabaseFault) return error;
  const cause = rootCause(error);
  const code = codeOf(cause);
  if (hasNoConnection(cause)) return new DatabaseFault(`there is no connection to the database: ${code}`);
  if (notSecured.test(code)) return new DatabaseFault(`there is no secure connection to the database: ${code}`);
  if (turnedAway.test(code)) return new DatabaseFault(`the database turned the connection away: ${messageOf(cause)}`);
  if (code === lockNotAvailable) return new DatabaseFault('another session of the database kept a lock for too long');
  const names = ['constraint_name', 'table_name', 'column_name']
    .map((key) => Reflect.get(cause, key))
    .filter((name) => typeof name === 'string');
  return new DatabaseFault(`the database refused a statement: ${[code || cause.constructor.name, ...names].join(' ')}`);
}

/** Whether we stopped waiting for a statement. */
function isGivenUp(error: unknown): error is StatementTimeout | ConnectionCut {
  return error instanceof StatementTimeout || error instanceof ConnectionCut;
}

/** Whether there is no connection, or no longer. After each of these the driver leaves its next statement waiting for one. */
function hasNoConnection(cause: object): boolean {
  return lostConnection.has(codeOf(cause)) || socketCall.test(String(Reflect.get(cause, 'syscall')));
}

/** Drizzle wraps the driver's error in one whose message carries the statement and its values. */
function rootCause(error: unknown): object {
  let cause: unknown = error;
  while (cause instanceof Error && cause.cause !== undefined) cause = cause.cause;
  return typeof cause === 'object' && cause !== null ? cause : new Error();
}

function codeOf(cause: object): string {
  const code: unknown = Reflect.get(cause, 'code');
  return typeof code === 'string' ? code : '';
}

function messageOf(cause: object): string {
  return cause instanceof Error ? cause.message : '';
}
