import { createHmac } from 'node:crypto';
import type postgres from 'postgres';

/**
 * The role that the gateway connects as. It owns its database, and is not a superuser, because a superuser can read the
 * system's files.
 */
export const gatewayRole = 'gateway_owner';

/** The password of {@link gatewayRole}: derived from the superuser's, so that it needs no separate file. */
export function gatewayPassword(superuserPassword: string): string {
  return createHmac('sha256', superuserPassword).update(gatewayRole).digest('base64url');
}

/** A database to create as the superuser. */
export interface GatewayDatabase {
  readonly name: string;
  /** The password of {@link gatewayRole}. */
  readonly password: string;
}

/**
 * Creates the database and its role if they don't exist. Fails if a concurrent start creates them too; the next attempt
 * finds them.
 */
export async function createGatewayDatabase(session: postgres.Sql, { name, password }: GatewayDatabase): Promise<void> {
  const databases = await session`select from pg_database where datname = ${name}`;
  if (databases.length > 0) return;
  const roles = await session`select from pg_roles where rolname = ${gatewayRole}`;
  // PostgreSQL accepts no parameters in `create role`. The password needs no escaping, because it consists of letters,
  // digits, - and _.
  if (roles.length === 0) await session.unsafe(`create role ${gatewayRole} login password '${password}'`);
  // Copies template0, because template1 can't be copied while another session is connected to it.
  await session`create database ${session(name)} template template0 owner ${session(gatewayRole)}`;
}
