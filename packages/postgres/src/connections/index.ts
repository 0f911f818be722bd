export {
  arrayLiteral,
  createConnectionEvents,
  type DatabaseClient,
  type DatabaseOptions,
  openClient,
} from './client.ts';
export { parseConnectionUrl } from './connection-url.ts';
export { ConnectionLost, isDuplicate, redact } from './errors.ts';
export { awaitRecovery, inspectServer, workerConnectionsMax } from './inspect-server.ts';
export * from './server-probe.ts';
export { openWriteCheck, type WriteCheckResult } from './write-check.ts';
