CREATE TABLE "events" (
	"merchant_id" bigint NOT NULL,
	"transaction_id" "xid8" NOT NULL,
	"event_id" text NOT NULL,
	"type" text NOT NULL,
	"created_at" timestamp (3) with time zone NOT NULL,
	"order_id" text NOT NULL,
	CONSTRAINT "events_merchant_id_transaction_id_event_id_pk" PRIMARY KEY("merchant_id","transaction_id","event_id"),
	CONSTRAINT "events_type" CHECK ("events"."type" in ('order.paid', 'order.expired', 'order.cancelled'))
);
--> statement-breakpoint
CREATE TABLE "webhook_deliveries" (
	"merchant_id" bigint NOT NULL,
	"event_id" text NOT NULL,
	"transaction_id" "xid8" NOT NULL,
	"attempts" integer NOT NULL,
	"next_attempt_at" timestamp (3) with time zone,
	"last_attempt_at" timestamp (3) with time zone,
	"delivered_at" timestamp (3) with time zone,
	"last_result" text,
	CONSTRAINT "webhook_deliveries_merchant_id_event_id_pk" PRIMARY KEY("merchant_id","event_id")
);
--> statement-breakpoint
CREATE TABLE "webhook_endpoints" (
	"merchant_id" bigint PRIMARY KEY NOT NULL,
	"url" text NOT NULL,
	"signing_secret" "bytea" NOT NULL,
	"previous_secret" "bytea",
	"previous_ends_at" timestamp (3) with time zone,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"disabled_at" timestamp (3) with time zone,
	"failing_since" timestamp (3) with time zone
);
--> statement-breakpoint
ALTER TABLE "merchants" ADD COLUMN "kind" text DEFAULT 'merchant' NOT NULL;--> statement-breakpoint
ALTER TABLE "merchants" ADD COLUMN "mode" text DEFAULT 'live' NOT NULL;--> statement-breakpoint
ALTER TABLE "merchants" ADD COLUMN "default_lifetime_seconds" integer;--> statement-breakpoint
ALTER TABLE "orders" ADD COLUMN "order_expires_at" timestamp (3) with time zone;--> statement-breakpoint
ALTER TABLE "orders" ADD COLUMN "paid_at" timestamp (3) with time zone;--> statement-breakpoint
ALTER TABLE "orders" ADD COLUMN "payment_id" text;--> statement-breakpoint
ALTER TABLE "orders" ADD COLUMN "cancelled_at" timestamp (3) with time zone;--> statement-breakpoint
ALTER TABLE "events" ADD CONSTRAINT "events_merchant_id_merchants_id_fk" FOREIGN KEY ("merchant_id") REFERENCES "public"."merchants"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "webhook_deliveries" ADD CONSTRAINT "webhook_deliveries_merchant_id_merchants_id_fk" FOREIGN KEY ("merchant_id") REFERENCES "public"."merchants"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "webhook_endpoints" ADD CONSTRAINT "webhook_endpoints_merchant_id_merchants_id_fk" FOREIGN KEY ("merchant_id") REFERENCES "public"."merchants"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "events_created_at" ON "events" USING brin ("created_at");--> statement-breakpoint
CREATE INDEX "webhook_deliveries_due" ON "webhook_deliveries" USING btree ("merchant_id","next_attempt_at") WHERE "webhook_deliveries"."next_attempt_at" is not null;--> statement-breakpoint
CREATE INDEX "orders_list" ON "orders" USING btree ("merchant_id","order_status","created_at","service_order_id");--> statement-breakpoint
CREATE INDEX "orders_open_end" ON "orders" USING btree ("order_expires_at") WHERE "orders"."order_status" = 'UN_PAID' and "orders"."order_expires_at" is not null;--> statement-breakpoint
ALTER TABLE "orders" ADD CONSTRAINT "orders_status" CHECK ("orders"."order_status" in ('UN_PAID', 'PAID', 'EXPIRED', 'CANCELLED'));--> statement-breakpoint
ALTER TABLE "orders" ADD CONSTRAINT "orders_paid" CHECK (("orders"."order_status" = 'PAID') = ("orders"."paid_at" is not null and "orders"."payment_id" is not null));--> statement-breakpoint
ALTER TABLE "orders" ADD CONSTRAINT "orders_cancelled" CHECK (("orders"."order_status" = 'CANCELLED') = ("orders"."cancelled_at" is not null));