import { readFile } from 'node:fs/promises';
import { startTestServer } from '@order-gateway/dev-postgres/testing';
import { migrateDatabase } from '../src/migrate.ts';
import { runQuery } from './run-query.ts';

/** The roles of `roles.sql`. */
export const roles = ['order_gateway_owner', 'order_gateway', 'order_gateway_reader'] as const;

/** A separate server with a database set up as in production. */
export interface ProductionDatabase {
  /** The URL for one of the roles of `roles.sql`. */
  urlAs(role: (typeof roles)[number]): string;
  stop(): Promise<void>;
}

/** Starts a server, creates the roles of `roles.sql`, and migrates the database as its owner. */
export async function startProductionDatabase(): Promise<ProductionDatabase> {
  const server = await startTestServer();
  try {
    await setUpAsInProduction(server.url);
  } catch (error) {
    await server.stop();
    throw error;
  }
  return { urlAs: (role) => urlAs(server.url, role), stop: server.stop };
}

/** Creates the roles of `roles.sql`, whose names are their passwords, and migrates the database as its owner. */
export async function setUpAsInProduction(url: string): Promise<void> {
  // Runs twice, because an operator may run it twice.
  for (const text of [await readRoles(), await readRoles()]) await runQuery(url, text);
  for (const role of roles) await runQuery(url, `alter role ${role} password '${role}'`);
  await migrateDatabase(urlAs(url, 'order_gateway_owner'));
}

/** Returns the text of `roles.sql`. */
export function readRoles(): Promise<string> {
  return readFile(new URL('../roles.sql', import.meta.url), 'utf8');
}

/** Returns the URL of a database for one of the roles. */
export function urlAs(databaseUrl: string, role: (typeof roles)[number]): string {
  const url = new URL(databaseUrl);
  [url.username, url.password] = [role, role];
  return url.href;
}
