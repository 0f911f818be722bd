import { fileURLToPath } from 'node:url';
import type { Migrations } from '@order-gateway/postgres/migrate';

/** The migrations of the schema `checkout`. */
export const checkoutMigrations: Migrations = {
  folder: fileURLToPath(new URL('../../migrations', import.meta.url)),
  table: '__checkout_migrations',
  grantsFile: new URL('../../grants.sql', import.meta.url),
};
