-- Optional: distributes the tables that grow over the workers of a Citus cluster. docs/scaling.md says when, and what it costs.
--
--   psql "$DATABASE_URL" -v ON_ERROR_STOP=1 -f packages/postgres/distribute.sql
--
-- Run it after the migrations, as the role that runs them, also while gateways run. Use two to four times as many shards as the
-- workers will ever have cores.
alter table orders drop constraint orders_merchant_id_accounts_id_fk;
alter table order_metadata drop constraint order_metadata_merchant_id_accounts_id_fk;

select create_distributed_table_concurrently('orders', 'merchant_id', shard_count => 32);
select create_distributed_table_concurrently('order_metadata', 'merchant_id', colocate_with => 'orders');
