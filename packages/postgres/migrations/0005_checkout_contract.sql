ALTER TABLE "accounts" ADD COLUMN "late_days" integer DEFAULT 1 NOT NULL;--> statement-breakpoint
ALTER TABLE "accounts" ADD COLUMN "gets_customer_data" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "brands" ADD COLUMN "payment_instructions" text;--> statement-breakpoint
ALTER TABLE "orders" ADD COLUMN "ended_attempts" jsonb;--> statement-breakpoint
ALTER TABLE "payments" ADD COLUMN "paid_on" date;--> statement-breakpoint
ALTER TABLE "payments" ADD COLUMN "note" text;--> statement-breakpoint
create or replace function change_order (merchant_id bigint, order_id text, from_status text, to_status text, event_type text, paid_at timestamptz, payment_id text, checkout_id bigint, cancelled_at timestamptz)
returns int language plpgsql set plan_cache_mode = force_custom_plan as $$
#variable_conflict use_column
declare
  changed_id text;
  changed_at timestamptz(3) := now();
  new_event_id text;
  changed int := 0;
begin
  for changed_id in update "orders" set "order_status" = change_order.to_status, "paid_at" = change_order.paid_at, "payment_id" = change_order.payment_id, "cancelled_at" = change_order.cancelled_at, "checkout_id" = change_order.checkout_id, "lease_checkout_id" = case when change_order.to_status = 'EXPIRED' then "orders"."lease_checkout_id" end, "lease_attempt_id" = case when change_order.to_status = 'EXPIRED' then "orders"."lease_attempt_id" end, "lease_ends_at" = case when change_order.to_status = 'EXPIRED' then "orders"."lease_ends_at" end, "ended_attempts" = case when change_order.to_status = 'EXPIRED' then "orders"."ended_attempts" end where (("orders"."merchant_id" = change_order.merchant_id and "orders"."order_id" = change_order.order_id) and "orders"."order_status" = change_order.from_status and (change_order.to_status = 'EXPIRED' or (("orders"."order_status" = 'UN_PAID' and "orders"."order_expires_at" <= now() and ("orders"."lease_ends_at" > now()) is not true)) is not true) and (change_order.to_status = 'PAID' and change_order.checkout_id is distinct from change_order.merchant_id or ("orders"."lease_ends_at" > now()) is not true)) returning "order_id" loop
    new_event_id := 'evt_' || to_hex((extract(epoch from now()) * 1000000)::bigint) || left(replace(gen_random_uuid()::text, '-', ''), 19);
    insert into "events" (merchant_id, event_id, type, created_at, order_id)
      values (change_order.merchant_id, new_event_id, change_order.event_type, changed_at, changed_id);
    insert into "webhook_deliveries" (merchant_id, endpoint_id, event_id, attempts, next_attempt_at)
      select "webhook_endpoints"."merchant_id", "webhook_endpoints"."endpoint_id", new_event_id, 0, now() from "webhook_endpoints"
      where "webhook_endpoints"."merchant_id" = change_order.merchant_id and "webhook_endpoints"."disabled_at" is null and ("webhook_endpoints"."event_types" is null or change_order.event_type = any("webhook_endpoints"."event_types"));
    changed := changed + 1;
  end loop;
  return changed;
end $$;--> statement-breakpoint
create or replace function insert_orders (merchant_id bigint, new_orders json)
returns setof bigint language plpgsql set plan_cache_mode = force_custom_plan as $$
#variable_conflict use_column
declare
  new_order "orders";
  new_digest bytea;
begin
  for new_order in select * from json_populate_recordset(null::"orders", insert_orders.new_orders) loop
    insert into "orders" ("merchant_id", "service_order_id", "order_token", "order_status", "created_at", "order_id", "order_amount", "order_currency", "order_note", "service_type", "customer_name", "customer_email", "customer_phone", "customer_address_line1", "customer_address_line2", "customer_address_city", "customer_address_state", "customer_address_country", "customer_address_postal_code", "order_checksum", "return_url", "customer_locale", "order_expires_at", "paid_at", "payment_id", "cancelled_at", "erased_digest", "checkout_id", "lease_checkout_id", "lease_attempt_id", "lease_ends_at", "ended_attempts", "refused_payments", "metadata") values (new_order.merchant_id, new_order.service_order_id, new_order.order_token, new_order.order_status, new_order.created_at, new_order.order_id, new_order.order_amount, new_order.order_currency, new_order.order_note, new_order.service_type, new_order.customer_name, new_order.customer_email, new_order.customer_phone, new_order.customer_address_line1, new_order.customer_address_line2, new_order.customer_address_city, new_order.customer_address_state, new_order.customer_address_country, new_order.customer_address_postal_code, new_order.order_checksum, new_order.return_url, new_order.customer_locale, new_order.order_expires_at, default, default, default, default, default, default, default, default, default, default, new_order.metadata) on conflict ("merchant_id","order_id") do nothing;
    if found then
      return next new_order.service_order_id;
      for new_digest in select sha256(convert_to(key || '=' || value, 'UTF8')) from jsonb_each_text(new_order.metadata) loop
        insert into "order_metadata" ("merchant_id", "pair_digest", "created_at", "service_order_id") values (new_order.merchant_id, new_digest, new_order.created_at, new_order.service_order_id);
      end loop;
    end if;
  end loop;
end $$;