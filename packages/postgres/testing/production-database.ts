import { readFile } from 'node:fs/promises';
import { startTestServer } from '@order-gateway/dev-postgres/testing';
import { migrateDatabase } from '../src/migrate.ts';
import { runQuery } from './run-query.ts';

const roles = ['order_gateway_owner', 'order_gateway', 'order_gateway_reader'] as const;

/** A separate server with a database set up as in production. */
export interface ProductionDatabase {
  /** The URL for one of the roles of `roles.sql`. */
  urlAs(role: (typeof roles)[number]): string;
  stop(): Promise<void>;
}

/** Starts a server, creates the roles of `roles.sql`, and migrates the database as its owner. */
export async function startProductionDatabase(): Promise<ProductionDatabase> {
  const server = await startTestServer();
  const urlAs = (role: string) => {
    const url = new URL(server.url);
    [url.username, url.password] = [role, role];
    return url.href;
  };
  try {
    const createRoles = await readFile(new URL('../roles.sql', import.meta.url), 'utf8');
    // Runs twice, because an operator may run it twice.
    for (const text of [createRoles, createRoles]) await runQuery(server.url, text);
    for (const role of roles) await runQuery(server.url, `alter role ${role} password '${role}'`);
    await migrateDatabase(urlAs('order_gateway_owner'));
  } catch (error) {
    await server.stop();
    throw error;
  }
  return { urlAs, stop: server.stop };
}
