-- PostgreSQL keeps no statistics of the merchants of growing tables, and then expects half a percent of a table for any
-- merchant. With statistics, it expects one row for a merchant that is newer than they are, and any index that begins
-- with merchant_id seems as good as the right one (docs/decisions/082-no-statistics-of-merchants.md).
do $$
declare
  growing text;
  part record;
  can_clear constant boolean := current_setting('server_version_num')::int >= 180000;
  is_superuser constant boolean := current_setting('is_superuser') = 'on';
begin
  foreach growing in array array['orders', 'order_metadata', 'refused_payments', 'events', 'webhook_deliveries'] loop
    -- Before version 18, only a superuser can remove statistics. Those that stay must be renewed, or they get worse.
    continue when not can_clear and not is_superuser and exists (
      select from pg_stats where tablename = growing and schemaname = current_schema and attname = 'merchant_id'
    );
    begin
      execute format('alter table %I alter column merchant_id set statistics 0', growing);
    exception when feature_not_supported then
      -- Citus can't change this for a table that is distributed already.
      continue;
    end;
    for part in
      select relname, relnamespace::regnamespace::text as schema, inherited
      from pg_class cross join unnest(array[false, true]) as inherited
      where oid = growing::regclass or oid in (select inhrelid from pg_inherits where inhparent = growing::regclass)
    loop
      if can_clear then
        execute format('select pg_clear_attribute_stats(%L, %L, %L, %L)', part.schema, part.relname, 'merchant_id', part.inherited);
      elsif is_superuser then
        delete from pg_statistic using pg_attribute
        where starelid = attrelid and staattnum = attnum and attname = 'merchant_id'
          and attrelid = format('%I.%I', part.schema, part.relname)::regclass;
      end if;
    end loop;
  end loop;
end $$;
