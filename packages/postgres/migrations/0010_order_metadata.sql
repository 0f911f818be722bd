CREATE TABLE "order_metadata" (
	"merchant_id" bigint NOT NULL,
	"pair_digest" "bytea" NOT NULL,
	"created_at" timestamp (3) with time zone NOT NULL,
	"service_order_id" bigint NOT NULL,
	CONSTRAINT "order_metadata_pk" PRIMARY KEY("merchant_id","pair_digest","created_at","service_order_id")
);
--> statement-breakpoint
ALTER TABLE "orders" ADD COLUMN "metadata" jsonb;--> statement-breakpoint
ALTER TABLE "order_metadata" ADD CONSTRAINT "order_metadata_merchant_id_merchants_id_fk" FOREIGN KEY ("merchant_id") REFERENCES "public"."merchants"("id") ON DELETE no action ON UPDATE no action;