export { type AccountAdmin, createMerchant, openAccountAdmin } from './account-admin.ts';
export { openAccountDirectory, type PostgresAccountDirectory } from './account-directory.ts';
export { openConsoleSessions, type PostgresConsoleSessions } from './console-sessions.ts';
