-- Custom SQL migration file, put your code below! --
drop function if exists query_shards (bigint, text);
--> statement-breakpoint
create or replace function run_on_shards (merchant_id bigint, merchant_ids bigint[], query text)
returns setof record language plpgsql set plan_cache_mode = force_custom_plan as $$
#variable_conflict use_column
declare
  shard_query text;
  tables text[];
  shard_ids bigint[];
begin
  if not exists (select from pg_dist_partition where logicalrelid = 'orders'::regclass) then
    return query execute run_on_shards.query;
    return;
  end if;
  for tables, shard_ids in
    select array_agg(relname::text), array_agg(shardid) from pg_dist_partition
    join pg_class on pg_class.oid = logicalrelid join pg_dist_shard using (logicalrelid)
    join pg_dist_placement using (shardid) join pg_dist_local_group using (groupid)
    where colocationid = (select colocationid from pg_dist_partition where logicalrelid = 'orders'::regclass)
    group by shardminvalue having run_on_shards.merchant_ids is null or array_agg(shardid) && (
      select array_agg(get_shard_id_for_distribution_column('orders', merchant.id))
      from unnest(run_on_shards.merchant_ids) as merchant (id)
    )
    order by shardminvalue
  loop
    shard_query := run_on_shards.query;
    for number in 1 .. cardinality(tables) loop
      -- A name after a dot is a column's.
      shard_query := regexp_replace(shard_query, '(?<!\.)"' || tables[number] || '"', '"' || tables[number] || '_' || shard_ids[number] || '"', 'g');
    end loop;
    return query execute shard_query;
  end loop;
  if not found and run_on_shards.merchant_ids is null then
    raise exception 'this server has no orders: distribute the function run_on_shards';
  end if;
end $$;