CREATE TABLE "payments" (
	"checkout_id" bigint NOT NULL,
	"payment_id" text NOT NULL,
	"merchant_id" bigint NOT NULL,
	"order_id" text NOT NULL,
	CONSTRAINT "payments_checkout_id_payment_id_pk" PRIMARY KEY("checkout_id","payment_id")
);
--> statement-breakpoint
ALTER TABLE "orders" ADD COLUMN "checkout_id" bigint;--> statement-breakpoint
ALTER TABLE "payments" ADD CONSTRAINT "payments_checkout_id_merchants_id_fk" FOREIGN KEY ("checkout_id") REFERENCES "public"."merchants"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "payments" ADD CONSTRAINT "payments_merchant_id_merchants_id_fk" FOREIGN KEY ("merchant_id") REFERENCES "public"."merchants"("id") ON DELETE no action ON UPDATE no action;