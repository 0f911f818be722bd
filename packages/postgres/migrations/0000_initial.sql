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
CREATE INDEX "orders_open_end" ON "orders" USING btree ("order_expires_at") WHERE "orders"."order_status" = 'UN_PAID' and "orders"."order_expires_at" is not null;--> statement-breakpoint
CREATE INDEX "webhook_deliveries_due" ON "webhook_deliveries" USING btree ("merchant_id","endpoint_id","next_attempt_at") WHERE "webhook_deliveries"."next_attempt_at" is not null;--> statement-breakpoint
CREATE INDEX "webhook_deliveries_failed" ON "webhook_deliveries" USING btree ("merchant_id","endpoint_id","event_id") WHERE "webhook_deliveries"."next_attempt_at" is null and "webhook_deliveries"."delivered_at" is null;--> statement-breakpoint
-- Drizzle's schema has no triggers: keep what follows when this file is generated again.
CREATE FUNCTION "reject_change"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION 'entries of % are never changed', TG_TABLE_NAME;
END $$;--> statement-breakpoint
CREATE TRIGGER "audit_log_append_only" BEFORE UPDATE OR DELETE OR TRUNCATE ON "audit_log" FOR EACH STATEMENT EXECUTE FUNCTION "reject_change"();
