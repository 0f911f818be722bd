/** The connection was lost, or did not respond in time. Whether its statements were executed is unknown. */
export class ConnectionLost extends Error {
  override name = 'ConnectionLost';

  constructor(message = 'the connection to the database was lost') {
    super(message);
  }
}

/** The message used when a server rejects TLS that is required. */
export const noTlsMessage =
  'no TLS connection to the database: it rejected TLS; enable it there, or set sslmode=disable in a private network';

/**
 * The server can't end the session, which waits for a synchronous standby or a disk. It is unknown whether the
 * session's statement was executed. Further statements are not sent.
 */
export class ConnectionStuck extends ConnectionLost {
  constructor() {
    super('the database waits for its synchronous standby, or for a disk');
  }
}

/**
 * A statement failed for a reason that no caller of the gateway can correct. The message contains no SQL, and no values
 * because they may be customer data. The code and the names of the constraint, table and column are enough to find the
 * cause.
 */
export class DatabaseError extends Error {
  override name = 'DatabaseError';
}

/** The kinds of failure after which a statement may be sent again. */
export type StatementFailure = 'unavailable' | 'overloaded';

/** Codes of postgres.js, and codes that Node.js also reports without a system call. */
const connectionCodes = new Set([
  'CONNECTION_CLOSED',
  'CONNECTION_DESTROYED',
  'CONNECTION_ENDED',
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EPIPE',
  'ETIMEDOUT',
]);

/**
 * System calls in socket errors of Node.js, for example for an unknown host, a missing route or socket file, or a lack
 * of file descriptors.
 */
const socketCalls = /^(connect|getaddrinfo|read|write|shutdown)$/;

/** Node.js error codes for TLS and certificate failures (its manual, "X509 certificate error codes"). */
const tlsCodes = /^ERR_(SSL|TLS)_|CERT|CRL|^(UNABLE_TO|INVALID)_|^HOSTNAME_MISMATCH$/;

/** Node.js error codes for a certificate whose authority is unknown. */
const unknownAuthorityCodes = /SELF_SIGNED|^UNABLE_TO_(GET|VERIFY)/;

/**
 * The message of Node.js when a server without TLS closes the connection during the TLS handshake; its code is only
 * ECONNRESET.
 */
const tlsClosedMessage = 'before secure TLS connection was established';

/**
 * SQLSTATEs after which the same order may be sent again (PostgreSQL 18, appendix A): connection exceptions,
 * insufficient resources, operator intervention such as a shutdown or a statement timeout, a server in recovery or
 * read-only after a failover, timeouts of transactions and locks, deadlocks and serialization failures, and I/O errors.
 */
const temporaryStates = /^(08...|53...|57...|25006|25P0[34]|55P03|40001|40P01|58030)$/;

/**
 * SQLSTATEs of a database that is not set up for the gateway: its role may not connect or lacks a privilege, or the
 * database, a table, a column or a function is missing. Only an operator can repair it, and then the call succeeds.
 */
const unpreparedStates = /^(28...|3D000|3F000|42501|42703|42883|42P01)$/;

/**
 * SQLSTATEs after which a connection is replaced: connection exceptions, shutdowns, timeouts that end the
 * session, and a read-only session, because a new session may reach the primary.
 */
const connectionStates = /^(08...|57P0[1-5]|25006|25P0[34])$/;

/**
 * Messages with SQLSTATE XX000 (internal error) that Citus 13.2 reports when its coordinator has lost a worker: those
 * of Citus (remote_transaction.c, multi_copy.c) and those of libpq. The session keeps the broken connection, so the
 * session is replaced too. The first message means that a shard was moved or split during the statement
 * (metadata_utility.c).
 */
const shardLostTexts =
  /^(could not find valid entry for shard|failure on connection marked as essential|could not connect to any active placements|connection (not open|claimed exclusively)|server closed the connection|could not (send|receive) data)/;

/** SQLSTATEs of rejected connections, from a server or pooler. The message names only parts of the URL. */
const rejectedConnectionStates = /^(08P01|28...|3D000|42704)$/;

const readOnly = '25006';
const insufficientPrivilege = '42501';
/** SQLSTATEs of a missing schema, column, function or table. */
const missingObjectStates = ['3F000', '42703', '42883', '42P01'];
const missingObjectMessage = 'the database lacks a table, column or function of this version: run `migrate`';
const tooManyConnections = '53300';
const cannotConnectNow = '57P03';
const lockNotAvailable = '55P03';
const invalidStatementName = '26000';
/** The message used when a lock was not granted in time. */
export const lockTimeoutMessage = 'timed out waiting for a lock that another database session holds';
/** SQLSTATEs of a serialization failure and of a deadlock. */
const concurrencyStates = ['40001', '40P01'];
const uniqueViolation = '23505';
const notNullViolation = '23502';

/** Returns the kind of a failure; `undefined` for an internal error, which must be thrown {@link redact redacted}. */
export function statementFailure(error: unknown): StatementFailure | undefined {
  const cause = rootCause(error);
  if (codeOf(cause) === tooManyConnections) return 'overloaded';
  const isUnavailable = hasNoConnection(cause) || temporaryStates.test(codeOf(cause)) || isUnprepared(cause);
  return isUnavailable ? 'unavailable' : undefined;
}

/** Whether a statement failed because the database is not set up for the gateway. */
export function isUnprepared(error: unknown): boolean {
  return unpreparedStates.test(codeOf(rootCause(error)));
}

/** Whether a statement failed because its connection is lost or may be lost. */
export function isConnectionLost(error: unknown): boolean {
  const cause = rootCause(error);
  // After a TLS failure, the driver also lets its next statement wait forever.
  return hasNoConnection(cause) || tlsCodes.test(codeOf(cause)) || connectionStates.test(codeOf(cause));
}

/** Whether a statement failed only because of a concurrent one, so that it can be run again. */
export function isConcurrencyFailure(error: unknown): boolean {
  return concurrencyStates.includes(codeOf(rootCause(error)));
}

/**
 * Whether a server rejected a connection only because it is still starting, for example while it recovers from a crash.
 */
export function isStarting(error: unknown): boolean {
  return codeOf(rootCause(error)) === cannotConnectNow;
}

/** Whether a statement failed because it was not prepared in the session in which it ran. */
export function isUnknownStatement(error: unknown): boolean {
  return codeOf(rootCause(error)) === invalidStatementName;
}

/** Whether a statement failed because a lock was not granted in time. */
export function isLockTimeout(error: unknown): boolean {
  return codeOf(rootCause(error)) === lockNotAvailable;
}

/**
 * Whether a statement failed because a row's key is in use. The constraint has a different name in each partition, so
 * the name does not say which key it is.
 */
export function isDuplicate(error: unknown): boolean {
  return codeOf(rootCause(error)) === uniqueViolation;
}

/**
 * Whether a change failed because its caller is no longer authorized, so that its audit log entry would have no actor.
 */
export function isCallerEnded(error: unknown): boolean {
  const cause = rootCause(error);
  return codeOf(cause) === notNullViolation && Reflect.get(cause, 'column_name') === 'actor';
}

/** Whether a statement failed regardless of its values, for example because a table is missing (SQLSTATE class 42). */
export function failsWithAnyValues(error: unknown): boolean {
  return codeOf(rootCause(error)).startsWith('42');
}

/** Returns the error without SQL and values. Only such errors may leave this package and appear in a log. */
export function redact(error: unknown): Error {
  const cause = rootCause(error);
  return cause instanceof DatabaseError ? cause : new DatabaseError(messageFor(cause));
}

/** Performs work. Rejects with its error without SQL and values. */
export async function withRedactedErrors<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw redact(error);
  }
}

/** Resolves to `undefined` if the database was unreachable. Rejects only because of a bug. */
export async function unlessUnreachable<Result>(result: Promise<Result>): Promise<Result | undefined> {
  try {
    return await result;
  } catch (error) {
    if (statementFailure(error) === undefined) throw redact(error);
    return undefined;
  }
}

function messageFor(cause: Error): string {
  const code = codeOf(cause);
  if (cause instanceof ConnectionLost) return cause.message;
  if (cause.message.includes(tlsClosedMessage)) return noTlsMessage;
  if (hasNoConnection(cause)) return `no connection to the database: ${code}`;
  if (unknownAuthorityCodes.test(code))
    return `no secure connection to the database: ${code}; set sslrootcert to the certificate file of its authority`;
  if (tlsCodes.test(code)) return `no secure connection to the database: ${code}`;
  if (rejectedConnectionStates.test(code)) return `the database rejected the connection: ${cause.message}`;
  // The message names only the object to which access is denied.
  if (code === insufficientPrivilege)
    return `the database rejected a statement: ${cause.message}; migrations and commands need the role order_gateway_owner`;
  if (missingObjectStates.includes(code)) return missingObjectMessage;
  if (code === readOnly) return 'the database is read-only';
  if (code === lockNotAvailable) return lockTimeoutMessage;
  const names = ['constraint_name', 'table_name', 'column_name']
    .map((key) => Reflect.get(cause, key))
    .filter((name) => typeof name === 'string');
  return `the database rejected a statement: ${[code || cause.constructor.name, ...names].join(' ')}`;
}

function hasNoConnection(cause: Error): boolean {
  return (
    cause instanceof ConnectionLost ||
    connectionCodes.has(codeOf(cause)) ||
    (codeOf(cause) === 'XX000' && shardLostTexts.test(cause.message)) ||
    socketCalls.test(String(Reflect.get(cause, 'syscall')))
  );
}

/** Returns the driver's error. Drizzle wraps it in an error whose message contains the statement and its values. */
function rootCause(error: unknown): Error {
  let cause: unknown = error;
  while (cause instanceof Error && cause.cause !== undefined) cause = cause.cause;
  return cause instanceof Error ? cause : new Error();
}

function codeOf(cause: Error): string {
  const code: unknown = Reflect.get(cause, 'code');
  return typeof code === 'string' ? code : '';
}
