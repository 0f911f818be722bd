CREATE SEQUENCE "public"."service_order_id_blocks" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1;--> statement-breakpoint
CREATE TABLE "accounts" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "accounts_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"name" text NOT NULL,
	"client_id" text NOT NULL,
	"kind" text DEFAULT 'merchant' NOT NULL,
	"checksum_mode" text DEFAULT 'versioned' NOT NULL,
	"mode" text DEFAULT 'live' NOT NULL,
	"default_lifetime_seconds" integer,
	"disabled_at" timestamp (3) with time zone,
	"rate_limit" integer,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "accounts_client_id_unique" UNIQUE("client_id")
);
--> statement-breakpoint
CREATE TABLE "audit_log" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "audit_log_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"actor" text NOT NULL,
	"action" text NOT NULL,
	"client_id" text,
	"details" jsonb NOT NULL
);
--> statement-breakpoint
CREATE TABLE "brands" (
	"merchant_id" bigint PRIMARY KEY NOT NULL,
	"color" text,
	"support_email" text,
	"support_url" text,
	"terms_url" text,
	"privacy_url" text,
	"logo" "bytea",
	"logo_digest" text,
	"logo_type" text,
	"logo_width" integer,
	"logo_height" integer
);
--> statement-breakpoint
CREATE TABLE "client_secrets" (
	"id" bigint GENERATED ALWAYS AS IDENTITY (sequence name "client_secrets_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"account_id" bigint NOT NULL,
	"secret_hash" "bytea" NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"ends_at" timestamp (3) with time zone,
	CONSTRAINT "client_secrets_account_id_id_pk" PRIMARY KEY("account_id","id")
);
--> statement-breakpoint
CREATE TABLE "event_feeds" (
	"merchant_id" bigint PRIMARY KEY NOT NULL,
	"last_position" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "events" (
	"merchant_id" bigint NOT NULL,
	"event_id" text NOT NULL,
	"position" bigint,
	"type" text NOT NULL,
	"created_at" timestamp (3) with time zone NOT NULL,
	"order_id" text NOT NULL,
	CONSTRAINT "events_merchant_id_event_id_pk" PRIMARY KEY("merchant_id","event_id"),
	CONSTRAINT "events_type" CHECK ("events"."type" in ('order.paid', 'order.expired', 'order.cancelled', 'order.payment_refused'))
);
--> statement-breakpoint
CREATE TABLE "order_metadata" (
	"merchant_id" bigint NOT NULL,
	"pair_digest" "bytea" NOT NULL,
	"created_at" timestamp (3) with time zone NOT NULL,
	"service_order_id" bigint NOT NULL,
	CONSTRAINT "order_metadata_pk" PRIMARY KEY("merchant_id","pair_digest","created_at","service_order_id")
);
--> statement-breakpoint
CREATE TABLE "orders" (
	"merchant_id" bigint NOT NULL,
	"service_order_id" bigint NOT NULL,
	"order_token" text NOT NULL,
	"order_status" text NOT NULL,
	"created_at" timestamp (3) with time zone NOT NULL,
	"order_id" text NOT NULL,
	"order_amount" numeric(15, 2) NOT NULL,
	"order_currency" text NOT NULL,
	"order_note" text NOT NULL,
	"service_type" text NOT NULL,
	"customer_name" text NOT NULL,
	"customer_email" text NOT NULL,
	"customer_phone" text NOT NULL,
	"customer_address_line1" text NOT NULL,
	"customer_address_line2" text NOT NULL,
	"customer_address_city" text NOT NULL,
	"customer_address_state" text NOT NULL,
	"customer_address_country" text NOT NULL,
	"customer_address_postal_code" text NOT NULL,
	"order_checksum" text NOT NULL,
	"return_url" text NOT NULL,
	"customer_locale" text NOT NULL,
	"order_expires_at" timestamp (3) with time zone,
	"paid_at" timestamp (3) with time zone,
	"payment_id" text,
	"cancelled_at" timestamp (3) with time zone,
	"erased_digest" "bytea",
	"checkout_id" bigint,
	"lease_checkout_id" bigint,
	"lease_attempt_id" text,
	"lease_ends_at" timestamp (3) with time zone,
	"refused_payments" jsonb,
	"metadata" jsonb,
	CONSTRAINT "orders_merchant_id_order_id_pk" PRIMARY KEY("merchant_id","order_id"),
	CONSTRAINT "orders_service_order_id" UNIQUE("service_order_id","merchant_id"),
	CONSTRAINT "orders_amount_positive" CHECK ("orders"."order_amount" > 0),
	CONSTRAINT "orders_status" CHECK ("orders"."order_status" in ('UN_PAID', 'PAID', 'EXPIRED', 'CANCELLED')),
	CONSTRAINT "orders_paid" CHECK (("orders"."order_status" = 'PAID') = ("orders"."paid_at" is not null and "orders"."payment_id" is not null)),
	CONSTRAINT "orders_cancelled" CHECK (("orders"."order_status" = 'CANCELLED') = ("orders"."cancelled_at" is not null))
);
--> statement-breakpoint
CREATE TABLE "payments" (
	"checkout_id" bigint NOT NULL,
	"payment_id" text NOT NULL,
	"merchant_id" bigint NOT NULL,
	"order_id" text NOT NULL,
	CONSTRAINT "payments_checkout_id_payment_id_pk" PRIMARY KEY("checkout_id","payment_id")
);
--> statement-breakpoint
CREATE TABLE "refused_payments" (
	"merchant_id" bigint NOT NULL,
	"order_id" text NOT NULL,
	"checkout_id" bigint,
	"payment_id" text NOT NULL,
	"amount" numeric(15, 2) NOT NULL,
	"currency" text NOT NULL,
	"paid_at" timestamp (3) with time zone NOT NULL,
	"code" text NOT NULL,
	"refused_at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "refused_payments_pk" PRIMARY KEY("merchant_id","order_id","refused_at"),
	CONSTRAINT "refused_payments_payment" UNIQUE NULLS NOT DISTINCT("merchant_id","order_id","checkout_id","payment_id"),
	CONSTRAINT "refused_payments_code" CHECK ("refused_payments"."code" in ('order_already_paid', 'order_cancelled', 'order_expired', 'payment_mismatch'))
);
--> statement-breakpoint
CREATE TABLE "webhook_deliveries" (
	"merchant_id" bigint NOT NULL,
	"endpoint_id" text NOT NULL,
	"event_id" text NOT NULL,
	"attempts" integer NOT NULL,
	"next_attempt_at" timestamp (3) with time zone,
	"last_attempt_at" timestamp (3) with time zone,
	"delivered_at" timestamp (3) with time zone,
	"last_result" text,
	CONSTRAINT "webhook_deliveries_pk" PRIMARY KEY("merchant_id","event_id","endpoint_id")
);
--> statement-breakpoint
CREATE TABLE "webhook_endpoints" (
	"merchant_id" bigint NOT NULL,
	"endpoint_id" text NOT NULL,
	"url" text NOT NULL,
	"event_types" text[],
	"signing_secret" "bytea" NOT NULL,
	"previous_secret" "bytea",
	"previous_ends_at" timestamp (3) with time zone,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"disabled_at" timestamp (3) with time zone,
	"failing_since" timestamp (3) with time zone,
	CONSTRAINT "webhook_endpoints_merchant_id_endpoint_id_pk" PRIMARY KEY("merchant_id","endpoint_id")
);
--> statement-breakpoint
ALTER TABLE "brands" ADD CONSTRAINT "brands_merchant_id_accounts_id_fk" FOREIGN KEY ("merchant_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "client_secrets" ADD CONSTRAINT "client_secrets_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "event_feeds" ADD CONSTRAINT "event_feeds_merchant_id_accounts_id_fk" FOREIGN KEY ("merchant_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "events" ADD CONSTRAINT "events_merchant_id_accounts_id_fk" FOREIGN KEY ("merchant_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "order_metadata" ADD CONSTRAINT "order_metadata_merchant_id_accounts_id_fk" FOREIGN KEY ("merchant_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "orders" ADD CONSTRAINT "orders_merchant_id_accounts_id_fk" FOREIGN KEY ("merchant_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "payments" ADD CONSTRAINT "payments_checkout_id_accounts_id_fk" FOREIGN KEY ("checkout_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "payments" ADD CONSTRAINT "payments_merchant_id_accounts_id_fk" FOREIGN KEY ("merchant_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "refused_payments" ADD CONSTRAINT "refused_payments_merchant_id_accounts_id_fk" FOREIGN KEY ("merchant_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "webhook_deliveries" ADD CONSTRAINT "webhook_deliveries_merchant_id_accounts_id_fk" FOREIGN KEY ("merchant_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "webhook_endpoints" ADD CONSTRAINT "webhook_endpoints_merchant_id_accounts_id_fk" FOREIGN KEY ("merchant_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "audit_log_client" ON "audit_log" USING btree ("client_id","id");--> statement-breakpoint
CREATE INDEX "brands_logo_digest" ON "brands" USING btree ("logo_digest");--> statement-breakpoint
CREATE UNIQUE INDEX "events_position" ON "events" USING btree ("merchant_id","position") WHERE "events"."position" is not null;--> statement-breakpoint
CREATE INDEX "events_without_position" ON "events" USING btree ("merchant_id","event_id") WHERE "events"."position" is null;--> statement-breakpoint
CREATE INDEX "events_created_at" ON "events" USING btree ("created_at");--> statement-breakpoint
CREATE INDEX "orders_order_token" ON "orders" USING btree ("order_token","merchant_id");--> statement-breakpoint
CREATE INDEX "orders_list" ON "orders" USING btree ("merchant_id","order_status","created_at","service_order_id");--> statement-breakpoint
CREATE INDEX "orders_not_erased" ON "orders" USING btree ("created_at") WHERE "orders"."erased_digest" is null;--> statement-breakpoint
CREATE INDEX "orders_unpaid_expiry" ON "orders" USING btree ("order_expires_at") WHERE "orders"."order_status" = 'UN_PAID' and "orders"."order_expires_at" is not null;--> statement-breakpoint
CREATE INDEX "webhook_deliveries_due" ON "webhook_deliveries" USING btree ("merchant_id","endpoint_id","next_attempt_at") WHERE "webhook_deliveries"."next_attempt_at" is not null;--> statement-breakpoint
CREATE INDEX "webhook_deliveries_failed" ON "webhook_deliveries" USING btree ("merchant_id","endpoint_id","event_id") WHERE "webhook_deliveries"."next_attempt_at" is null and "webhook_deliveries"."delivered_at" is null;--> statement-breakpoint
CREATE FUNCTION "reject_change"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION 'entries of % are never changed', TG_TABLE_NAME;
END $$;--> statement-breakpoint
CREATE TRIGGER "audit_log_append_only" BEFORE UPDATE OR DELETE OR TRUNCATE ON "audit_log" FOR EACH STATEMENT EXECUTE FUNCTION "reject_change"();--> statement-breakpoint
create or replace function change_order (merchant_id bigint, order_id text, from_status text, to_status text, event_type text, paid_at timestamptz, payment_id text, checkout_id bigint, cancelled_at timestamptz)
returns int language plpgsql set plan_cache_mode = force_custom_plan as $$
#variable_conflict use_column
declare
  changed_id text;
  changed_at timestamptz(3) := now();
  new_event_id text;
  changed int := 0;
begin
  for changed_id in update "orders" set "order_status" = change_order.to_status, "paid_at" = change_order.paid_at, "payment_id" = change_order.payment_id, "cancelled_at" = change_order.cancelled_at, "checkout_id" = change_order.checkout_id, "lease_checkout_id" = case when change_order.to_status = 'EXPIRED' then "orders"."lease_checkout_id" end, "lease_attempt_id" = case when change_order.to_status = 'EXPIRED' then "orders"."lease_attempt_id" end, "lease_ends_at" = case when change_order.to_status = 'EXPIRED' then "orders"."lease_ends_at" end where (("orders"."merchant_id" = change_order.merchant_id and "orders"."order_id" = change_order.order_id) and "orders"."order_status" = change_order.from_status and (change_order.to_status = 'EXPIRED' or (("orders"."order_status" = 'UN_PAID' and "orders"."order_expires_at" <= now() and ("orders"."lease_ends_at" > now()) is not true)) is not true) and (change_order.to_status = 'PAID' or ("orders"."lease_ends_at" > now()) is not true)) returning "order_id" loop
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
create or replace function expire_order_now (merchant_id bigint, order_id text)
returns int language plpgsql set plan_cache_mode = force_custom_plan as $$
#variable_conflict use_column
declare
  changed_id text;
  changed_at timestamptz(3) := now();
  new_event_id text;
  changed int := 0;
begin
  for changed_id in update "orders" set "order_status" = 'EXPIRED', "order_expires_at" = date_trunc('milliseconds', now()) where (("orders"."merchant_id" = expire_order_now.merchant_id and "orders"."order_id" = expire_order_now.order_id) and "orders"."order_status" = 'UN_PAID' and (("orders"."order_status" = 'UN_PAID' and "orders"."order_expires_at" <= now() and ("orders"."lease_ends_at" > now()) is not true)) is not true and ("orders"."lease_ends_at" > now()) is not true) returning "order_id" loop
    new_event_id := 'evt_' || to_hex((extract(epoch from now()) * 1000000)::bigint) || left(replace(gen_random_uuid()::text, '-', ''), 19);
    insert into "events" (merchant_id, event_id, type, created_at, order_id)
      values (expire_order_now.merchant_id, new_event_id, 'order.expired', changed_at, changed_id);
    insert into "webhook_deliveries" (merchant_id, endpoint_id, event_id, attempts, next_attempt_at)
      select "webhook_endpoints"."merchant_id", "webhook_endpoints"."endpoint_id", new_event_id, 0, now() from "webhook_endpoints"
      where "webhook_endpoints"."merchant_id" = expire_order_now.merchant_id and "webhook_endpoints"."disabled_at" is null and ("webhook_endpoints"."event_types" is null or 'order.expired' = any("webhook_endpoints"."event_types"));
    changed := changed + 1;
  end loop;
  return changed;
end $$;--> statement-breakpoint
create or replace function expire_orders (merchant_id bigint, order_ids text[])
returns int language plpgsql set plan_cache_mode = force_custom_plan as $$
#variable_conflict use_column
declare
  changed_id text;
  changed_at timestamptz(3) := now();
  new_event_id text;
  changed int := 0;
begin
  for changed_id in update "orders" set "order_status" = 'EXPIRED' where ("orders"."merchant_id" = expire_orders.merchant_id and "orders"."order_id" = any(expire_orders.order_ids) and ("orders"."order_status" = 'UN_PAID' and "orders"."order_expires_at" <= now() and ("orders"."lease_ends_at" > now()) is not true)) returning "order_id" loop
    new_event_id := 'evt_' || to_hex((extract(epoch from now()) * 1000000)::bigint) || left(replace(gen_random_uuid()::text, '-', ''), 19);
    insert into "events" (merchant_id, event_id, type, created_at, order_id)
      values (expire_orders.merchant_id, new_event_id, 'order.expired', changed_at, changed_id);
    insert into "webhook_deliveries" (merchant_id, endpoint_id, event_id, attempts, next_attempt_at)
      select "webhook_endpoints"."merchant_id", "webhook_endpoints"."endpoint_id", new_event_id, 0, now() from "webhook_endpoints"
      where "webhook_endpoints"."merchant_id" = expire_orders.merchant_id and "webhook_endpoints"."disabled_at" is null and ("webhook_endpoints"."event_types" is null or 'order.expired' = any("webhook_endpoints"."event_types"));
    changed := changed + 1;
  end loop;
  return changed;
end $$;--> statement-breakpoint
create or replace function refuse_payment (merchant_id bigint, order_id text, from_status text, checkout_id bigint, payment_id text, amount numeric, currency text, paid_at timestamptz(3), code text)
returns int language plpgsql set plan_cache_mode = force_custom_plan as $$
#variable_conflict use_column
declare
  changed_id text;
  changed_at timestamptz(3) := now();
  new_event_id text;
  changed int := 0;
begin
  changed_at := (select greatest(now(), ("orders"."refused_payments" -> -1 ->> 'refused_at')::timestamptz + interval '1 millisecond')
      from "orders" where ("orders"."merchant_id" = refuse_payment.merchant_id and "orders"."order_id" = refuse_payment.order_id) for update);
  for changed_id in update "orders" set "refused_payments" = case when jsonb_array_length("orders"."refused_payments") < 20 then "orders"."refused_payments" else coalesce("orders"."refused_payments" - 0, '[]') end || jsonb_build_object('checkout_id', refuse_payment.checkout_id, 'payment_id', refuse_payment.payment_id, 'amount', refuse_payment.amount, 'currency', refuse_payment.currency, 'paid_at', refuse_payment.paid_at, 'code', refuse_payment.code, 'refused_at', changed_at) where (("orders"."merchant_id" = refuse_payment.merchant_id and "orders"."order_id" = refuse_payment.order_id) and "orders"."order_status" = refuse_payment.from_status) returning "order_id" loop
    new_event_id := 'evt_' || to_hex((extract(epoch from now()) * 1000000)::bigint) || left(replace(gen_random_uuid()::text, '-', ''), 19);
    insert into "events" (merchant_id, event_id, type, created_at, order_id)
      values (refuse_payment.merchant_id, new_event_id, 'order.payment_refused', changed_at, changed_id);
    insert into "webhook_deliveries" (merchant_id, endpoint_id, event_id, attempts, next_attempt_at)
      select "webhook_endpoints"."merchant_id", "webhook_endpoints"."endpoint_id", new_event_id, 0, now() from "webhook_endpoints"
      where "webhook_endpoints"."merchant_id" = refuse_payment.merchant_id and "webhook_endpoints"."disabled_at" is null and ("webhook_endpoints"."event_types" is null or 'order.payment_refused' = any("webhook_endpoints"."event_types"));
    insert into "refused_payments" (merchant_id, order_id, "checkout_id", "payment_id", "amount", "currency", "paid_at", "code", refused_at)
      values (refuse_payment.merchant_id, changed_id, refuse_payment.checkout_id, refuse_payment.payment_id, refuse_payment.amount, refuse_payment.currency, refuse_payment.paid_at, refuse_payment.code, changed_at);
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
    insert into "orders" ("merchant_id", "service_order_id", "order_token", "order_status", "created_at", "order_id", "order_amount", "order_currency", "order_note", "service_type", "customer_name", "customer_email", "customer_phone", "customer_address_line1", "customer_address_line2", "customer_address_city", "customer_address_state", "customer_address_country", "customer_address_postal_code", "order_checksum", "return_url", "customer_locale", "order_expires_at", "paid_at", "payment_id", "cancelled_at", "erased_digest", "checkout_id", "lease_checkout_id", "lease_attempt_id", "lease_ends_at", "refused_payments", "metadata") values (new_order.merchant_id, new_order.service_order_id, new_order.order_token, new_order.order_status, new_order.created_at, new_order.order_id, new_order.order_amount, new_order.order_currency, new_order.order_note, new_order.service_type, new_order.customer_name, new_order.customer_email, new_order.customer_phone, new_order.customer_address_line1, new_order.customer_address_line2, new_order.customer_address_city, new_order.customer_address_state, new_order.customer_address_country, new_order.customer_address_postal_code, new_order.order_checksum, new_order.return_url, new_order.customer_locale, new_order.order_expires_at, default, default, default, default, default, default, default, default, default, new_order.metadata) on conflict ("merchant_id","order_id") do nothing;
    if found then
      return next new_order.service_order_id;
      for new_digest in select sha256(convert_to(key || '=' || value, 'UTF8')) from jsonb_each_text(new_order.metadata) loop
        insert into "order_metadata" ("merchant_id", "pair_digest", "created_at", "service_order_id") values (new_order.merchant_id, new_digest, new_order.created_at, new_order.service_order_id);
      end loop;
    end if;
  end loop;
end $$;