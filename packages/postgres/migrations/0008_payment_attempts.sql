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
ALTER TABLE "events" DROP CONSTRAINT "events_type";--> statement-breakpoint
ALTER TABLE "orders" ADD COLUMN "lease_checkout_id" bigint;--> statement-breakpoint
ALTER TABLE "orders" ADD COLUMN "lease_attempt_id" text;--> statement-breakpoint
ALTER TABLE "orders" ADD COLUMN "lease_ends_at" timestamp (3) with time zone;--> statement-breakpoint
ALTER TABLE "orders" ADD COLUMN "refused_payments" jsonb;--> statement-breakpoint
ALTER TABLE "refused_payments" ADD CONSTRAINT "refused_payments_merchant_id_merchants_id_fk" FOREIGN KEY ("merchant_id") REFERENCES "public"."merchants"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
-- Without the table's name, which the partitions don't know.
ALTER TABLE "events" ADD CONSTRAINT "events_type" CHECK ("type" in ('order.paid', 'order.expired', 'order.cancelled', 'order.payment_refused'));