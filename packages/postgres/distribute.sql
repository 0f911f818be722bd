-- Optional: distributes the growing tables over the workers of a Citus cluster. docs/scaling.md says when to use it,
-- and what it costs.
--
--   psql "$DATABASE_URL" -v ON_ERROR_STOP=1 -f packages/postgres/distribute.sql
--
-- Run it after the migrations, as the role that runs them. Gateways may be running. Use two to four times as many
-- shards as the workers will ever have cores.
alter table orders drop constraint orders_merchant_id_accounts_id_fk;
alter table order_metadata drop constraint order_metadata_merchant_id_accounts_id_fk;
alter table refused_payments drop constraint refused_payments_merchant_id_accounts_id_fk;
alter table pending_refunds drop constraint pending_refunds_merchant_id_accounts_id_fk;
alter table events drop constraint events_merchant_id_accounts_id_fk;
alter table event_feeds drop constraint event_feeds_merchant_id_accounts_id_fk;
alter table webhook_endpoints drop constraint webhook_endpoints_merchant_id_accounts_id_fk;
alter table webhook_deliveries drop constraint webhook_deliveries_merchant_id_accounts_id_fk;

select create_distributed_table_concurrently('orders', 'merchant_id', shard_count => 32);
select create_distributed_table_concurrently('order_metadata', 'merchant_id', colocate_with => 'orders');
select create_distributed_table_concurrently('refused_payments', 'merchant_id', colocate_with => 'orders');
select create_distributed_table_concurrently('pending_refunds', 'merchant_id', colocate_with => 'orders');
select create_distributed_table_concurrently('events', 'merchant_id', colocate_with => 'orders');
select create_distributed_table_concurrently('event_feeds', 'merchant_id', colocate_with => 'orders');
select create_distributed_table_concurrently('webhook_endpoints', 'merchant_id', colocate_with => 'orders');
select create_distributed_table_concurrently('webhook_deliveries', 'merchant_id', colocate_with => 'orders');

-- From now on, the worker that holds a merchant's orders executes the functions that create and change them.
select create_distributed_function(oid::regprocedure, 'merchant_id', colocate_with => 'orders') from pg_proc
where pronamespace = 'public'::regnamespace and 'merchant_id' = any(proargnames);
