CREATE TABLE "pending_refunds" (
	"merchant_id" bigint NOT NULL,
	"service_order_id" bigint NOT NULL,
	"created_at" timestamp (3) with time zone NOT NULL,
	"order_id" text NOT NULL,
	"order_token" text NOT NULL,
	"checkout_id" bigint NOT NULL,
	"payment_id" text NOT NULL,
	"refund_id" text,
	"provider_refund_id" text,
	"amount" numeric(15, 2) NOT NULL,
	"currency" text NOT NULL,
	CONSTRAINT "pending_refunds_pk" PRIMARY KEY("merchant_id","service_order_id","created_at")
);
--> statement-breakpoint
ALTER TABLE "events" DROP CONSTRAINT "events_type";--> statement-breakpoint
ALTER TABLE "accounts" ADD COLUMN "makes_refunds" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "orders" ADD COLUMN "reversals" jsonb;--> statement-breakpoint
ALTER TABLE "refused_payments" ADD COLUMN "refunded_at" timestamp (3) with time zone;--> statement-breakpoint
ALTER TABLE "pending_refunds" ADD CONSTRAINT "pending_refunds_merchant_id_accounts_id_fk" FOREIGN KEY ("merchant_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "pending_refunds_of_checkout" ON "pending_refunds" USING btree ("checkout_id","created_at","service_order_id");--> statement-breakpoint
-- The next migrations check the rows. The name of the table would not be valid in the constraint of a partition.
ALTER TABLE "events" ADD CONSTRAINT "events_type" CHECK ("type" in ('order.paid', 'order.expired', 'order.cancelled', 'order.payment_refused', 'order.refunded', 'order.refund_failed', 'order.disputed', 'order.dispute_closed')) NOT VALID;--> statement-breakpoint
create or replace function insert_orders (merchant_id bigint, new_orders json)
returns setof bigint language plpgsql set plan_cache_mode = force_custom_plan as $$
#variable_conflict use_column
declare
  new_order "orders";
  new_digest bytea;
begin
  for new_order in select * from json_populate_recordset(null::"orders", insert_orders.new_orders) loop
    insert into "orders" ("merchant_id", "service_order_id", "order_token", "order_status", "created_at", "order_id", "order_amount", "order_currency", "order_note", "service_type", "customer_name", "customer_email", "customer_phone", "customer_address_line1", "customer_address_line2", "customer_address_city", "customer_address_state", "customer_address_country", "customer_address_postal_code", "order_checksum", "return_url", "customer_locale", "order_expires_at", "paid_at", "payment_id", "cancelled_at", "erased_digest", "checkout_id", "lease_checkout_id", "lease_attempt_id", "lease_ends_at", "ended_attempts", "refused_payments", "metadata", "reversals") values (new_order.merchant_id, new_order.service_order_id, new_order.order_token, new_order.order_status, new_order.created_at, new_order.order_id, new_order.order_amount, new_order.order_currency, new_order.order_note, new_order.service_type, new_order.customer_name, new_order.customer_email, new_order.customer_phone, new_order.customer_address_line1, new_order.customer_address_line2, new_order.customer_address_city, new_order.customer_address_state, new_order.customer_address_country, new_order.customer_address_postal_code, new_order.order_checksum, new_order.return_url, new_order.customer_locale, new_order.order_expires_at, default, default, default, default, default, default, default, default, default, default, new_order.metadata, default) on conflict ("merchant_id","order_id") do nothing;
    if found then
      return next new_order.service_order_id;
      for new_digest in select sha256(convert_to(key || '=' || value, 'UTF8')) from jsonb_each_text(new_order.metadata) loop
        insert into "order_metadata" ("merchant_id", "pair_digest", "created_at", "service_order_id") values (new_order.merchant_id, new_digest, new_order.created_at, new_order.service_order_id);
      end loop;
    end if;
  end loop;
end $$;--> statement-breakpoint
create or replace function change_reversals (merchant_id bigint, order_id text, service_order_id bigint, reversals jsonb, new_events jsonb, pending jsonb, refused_checkout_id bigint, refused_payment_id text, refunded_at timestamptz)
returns int language plpgsql set plan_cache_mode = force_custom_plan as $$
#variable_conflict use_column
declare
  event record;
  new_event_id text;
begin
  update "orders" set "reversals" = change_reversals.reversals where (("orders"."merchant_id" = change_reversals.merchant_id and "orders"."order_id" = change_reversals.order_id) and coalesce(("orders"."reversals" ->> 'version')::int, 0) = coalesce((change_reversals.reversals ->> 'version')::int, 0) - 1);
  if not found then return 0; end if;
  for event in select * from rows from (jsonb_to_recordset(change_reversals.new_events) as (type text, at timestamptz))
    with ordinality as added (type, at, number) loop
    new_event_id := 'evt_' || to_hex((extract(epoch from now() + event.number * interval '1 microsecond') * 1000000)::bigint) || left(replace(gen_random_uuid()::text, '-', ''), 19);
    insert into "events" (merchant_id, event_id, type, created_at, order_id)
      values (change_reversals.merchant_id, new_event_id, event.type, event.at, change_reversals.order_id);
    insert into "webhook_deliveries" (merchant_id, endpoint_id, event_id, attempts, next_attempt_at)
      select "webhook_endpoints"."merchant_id", "webhook_endpoints"."endpoint_id", new_event_id, 0, now() from "webhook_endpoints"
      where "webhook_endpoints"."merchant_id" = change_reversals.merchant_id and "webhook_endpoints"."disabled_at" is null and ("webhook_endpoints"."event_types" is null or event.type = any("webhook_endpoints"."event_types"));
  end loop;
  delete from "pending_refunds" where ("pending_refunds"."merchant_id" = change_reversals.merchant_id and "pending_refunds"."service_order_id" = change_reversals.service_order_id);
  insert into "pending_refunds" select * from jsonb_populate_recordset(null::"pending_refunds", change_reversals.pending);
  update "refused_payments" set "refunded_at" = change_reversals.refunded_at where ("refused_payments"."merchant_id" = change_reversals.merchant_id and "refused_payments"."order_id" = change_reversals.order_id and "refused_payments"."checkout_id" = change_reversals.refused_checkout_id and "refused_payments"."payment_id" = change_reversals.refused_payment_id);
  return 1;
end $$;