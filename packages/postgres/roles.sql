-- The roles of a production database. A superuser runs this once, connected to the database, before the first
-- migration:
--   psql --file packages/postgres/roles.sql postgres://...
-- Then give each role a way to log in, such as a password (passwords.sql). Each run of `migrate` as the owner
-- gives the other two roles their privileges (grants.sql). The roles are:
--   order_gateway_owner   migrates, and runs the operators' commands
--   order_gateway         runs the gateway, with MIGRATE=off
--   order_gateway_reader  reads everything but secrets and customers' data

do $$
declare
  role_name text;
begin
  foreach role_name in array array['order_gateway_owner', 'order_gateway', 'order_gateway_reader'] loop
    begin
      execute format('create role %I login', role_name);
    exception
      when duplicate_object or unique_violation then null;
    end;
  end loop;
  execute format('grant create on database %I to order_gateway_owner', current_database());
  grant usage, create on schema public to order_gateway_owner;
end $$;
