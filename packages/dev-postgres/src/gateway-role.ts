import { createHmac } from 'node:crypto';
import postgres from 'postgres';

/** The role that the gateway connects as: it owns its database and is not a superuser, which could read the system's files. */
export const gatewayRole = 'gateway_owner';

/** The password of {@link gatewayRole}: made from the superuser's, so that it needs no file of its own. */
export function gatewayPassword(superuserPassword: string): string {
  return createHmac('sha256', superuserPassword).update(gatewayRole).digest('base64url');
}

/** A database to create as the superuser, who connects through `url`. */
export interface GatewayDatabase {
  readonly url: string;
  readonly name: string;
  /** The password of {@link gatewayRole}. */
  readonly password: string;
}

/**
 * Creates the database, or gives one of an earlier version, where everything belonged to the superuser, to the role of the
 * gateway. Fails if another start does the same: the next try finds it done.
 */
export async function giveDatabaseToGateway(session: postgres.Sql, { url, name, password }: GatewayDatabase) {
  const [found] = await session`
    select pg_get_userbyid(datdba) = ${gatewayRole} as is_given from pg_database where datname = ${name}`;
  if (found?.is_given === true) return;
  const roles = await session`select from pg_roles where rolname = ${gatewayRole}`;
  // A statement that creates a role takes no parameters. The password is of letters, digits, - and _.
  if (roles.length === 0) await session.unsafe(`create role ${gatewayRole} login password '${password}'`);
  // template0: template1 can't be copied while another session is connected to it.
  if (found === undefined)
    return void (await session`create database ${session(name)} template template0 owner ${session(gatewayRole)}`);
  await giveObjects(url);
  await session`alter database ${session(name)} owner to ${session(gatewayRole)}`;
}

/** `reassign owned` can't be used, as the superuser owns what the system needs, too. Indexes follow their table. */
async function giveObjects(url: string): Promise<void> {
  const session = postgres(url, { max: 1, fetch_types: false, onnotice: () => {}, ssl: false });
  try {
    await session.unsafe(`do $$
      declare
        command text;
      begin
        for command in
          select format('alter schema %I owner to ${gatewayRole}', nspname) from pg_namespace where nspname = 'drizzle'
          union all
          select format('alter table %I.%I owner to ${gatewayRole}', nspname, relname)
          from pg_class join pg_namespace on pg_namespace.oid = relnamespace
          where nspname in ('public', 'drizzle') and relkind in ('r', 'p')
          union all
          select format('alter sequence %I.%I owner to ${gatewayRole}', nspname, relname)
          from pg_class join pg_namespace on pg_namespace.oid = relnamespace
          where nspname in ('public', 'drizzle') and relkind = 'S'
            and not exists (select from pg_depend where objid = pg_class.oid and deptype in ('a', 'i'))
        loop
          execute command;
        end loop;
      end $$`);
  } finally {
    await session.end({ timeout: 1 });
  }
}
