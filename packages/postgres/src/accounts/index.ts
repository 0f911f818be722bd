export { type AccountAdmin, createMerchant, openAccountAdmin } from './account-admin.ts';
export { openAccountDirectory } from './account-directory.ts';
export { openConsoleSessions } from './console-sessions.ts';
