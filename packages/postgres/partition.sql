-- Optional: splits the orders and their events into 4 hash partitions by merchant_id. docs/scaling.md says when to use
-- it, and what it costs.
--
--   psql "$DATABASE_URL" -v ON_ERROR_STOP=1 -f packages/postgres/partition.sql
--
-- Run it after the migrations, as the role that runs them, with the gateway stopped. Then run `migrate` again,
-- which grants the privileges on the new tables. The script locks and copies both tables in one transaction, so it
-- succeeds completely or changes nothing. Later migrations apply to the result unchanged. The webhook deliveries stay
-- one table, because a claim finds them by ctid, which repeats in every partition.
begin;

do $$
declare
  partitions constant int := 4;
  name text;
  statement text;
  statements text[];
begin
  foreach name in array array['orders', 'events'] loop
    -- Keys and indexes, with the names that later migrations use. `like` copies columns, defaults and checks.
    select array_agg(definition order by place) into statements from (
      select 1 as place, format('alter table %I add constraint %I %s', name, conname, pg_get_constraintdef(oid)) as definition
      from pg_constraint where conrelid = name::regclass and contype in ('p', 'u', 'f')
      union all
      select 2, pg_get_indexdef(indexrelid) from pg_index
      where indrelid = name::regclass and indexrelid not in (select conindid from pg_constraint where conrelid = indrelid)
    ) as definitions;
    execute format('alter table %I rename to unpartitioned', name);
    execute format('create table %I (like unpartitioned including defaults including constraints) partition by hash (merchant_id)', name);
    for number in 0 .. partitions - 1 loop
      execute format(
        'create table %I partition of %I for values with (modulus %s, remainder %s)', name || '_' || number, name, partitions, number
      );
    end loop;
    -- `like` does not copy the statistics target (docs/decisions/082-no-statistics-of-merchants.md).
    execute format('alter table %I alter column merchant_id set statistics 0', name);
    execute format('insert into %I select * from unpartitioned', name);
    drop table unpartitioned;
    foreach statement in array statements loop
      execute statement;
    end loop;
    execute format('analyze %I', name);
  end loop;
end $$;

commit;
