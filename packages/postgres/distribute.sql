-- Optional: distributes the growing tables over the workers of a Citus cluster. docs/scaling.md says when to use it,
-- and what it costs.
--
--   psql "$DATABASE_URL" -v ON_ERROR_STOP=1 -f packages/postgres/distribute.sql
--
-- Run it after the migrations, as the role that runs them. Gateways may be running. Use two to four times as many
-- shards as the workers will ever have cores. If the orders are distributed, every migration run ends with this script,
-- which then distributes only the tables and functions that a new version has added.

-- Accounts, brands and payments stay on the coordinator.
do $$ begin execute coalesce((
  select string_agg(format('alter table %s drop constraint %I', conrelid::regclass, conname), '; ') from pg_constraint
  where conname like '%_merchant_id_accounts_id_fk' and conrelid not in ('brands'::regclass, 'payments'::regclass)
), 'select'); end $$;

select create_distributed_table_concurrently('orders', 'merchant_id', shard_count => 32)
  where 'orders'::regclass not in (select logicalrelid from pg_dist_partition);
select create_distributed_table_concurrently('order_metadata', 'merchant_id', colocate_with => 'orders')
  where 'order_metadata'::regclass not in (select logicalrelid from pg_dist_partition);
select create_distributed_table_concurrently('refused_payments', 'merchant_id', colocate_with => 'orders')
  where 'refused_payments'::regclass not in (select logicalrelid from pg_dist_partition);
select create_distributed_table_concurrently('pending_refunds', 'merchant_id', colocate_with => 'orders')
  where 'pending_refunds'::regclass not in (select logicalrelid from pg_dist_partition);
select create_distributed_table_concurrently('events', 'merchant_id', colocate_with => 'orders')
  where 'events'::regclass not in (select logicalrelid from pg_dist_partition);
select create_distributed_table_concurrently('event_feeds', 'merchant_id', colocate_with => 'orders')
  where 'event_feeds'::regclass not in (select logicalrelid from pg_dist_partition);
select create_distributed_table_concurrently('webhook_endpoints', 'merchant_id', colocate_with => 'orders')
  where 'webhook_endpoints'::regclass not in (select logicalrelid from pg_dist_partition);
select create_distributed_table_concurrently('webhook_deliveries', 'merchant_id', colocate_with => 'orders')
  where 'webhook_deliveries'::regclass not in (select logicalrelid from pg_dist_partition);

-- From now on, the worker that holds a merchant's orders executes the functions that create and change them.
select create_distributed_function(oid::regprocedure, 'merchant_id', colocate_with => 'orders') from pg_proc
  where pronamespace = 'public'::regnamespace and 'merchant_id' = any(proargnames) and not exists (
    select from pg_dist_object
    where classid = 'pg_proc'::regclass and objid = pg_proc.oid and distribution_argument_index is not null
  );
