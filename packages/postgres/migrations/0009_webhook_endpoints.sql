ALTER TABLE "webhook_endpoints" ADD COLUMN "endpoint_id" text DEFAULT 'we_00000000000000000000000000000000' NOT NULL;--> statement-breakpoint
ALTER TABLE "webhook_endpoints" ADD COLUMN "event_types" text[];--> statement-breakpoint
ALTER TABLE "webhook_endpoints" DROP CONSTRAINT "webhook_endpoints_pkey";--> statement-breakpoint
ALTER TABLE "webhook_endpoints" ADD CONSTRAINT "webhook_endpoints_merchant_id_endpoint_id_pk" PRIMARY KEY("merchant_id","endpoint_id");--> statement-breakpoint
ALTER TABLE "webhook_deliveries" ADD COLUMN "endpoint_id" text DEFAULT 'we_00000000000000000000000000000000' NOT NULL;--> statement-breakpoint
ALTER TABLE "webhook_deliveries" DROP CONSTRAINT "webhook_deliveries_merchant_id_event_id_pk";--> statement-breakpoint
ALTER TABLE "webhook_deliveries" ADD CONSTRAINT "webhook_deliveries_pk" PRIMARY KEY("merchant_id","transaction_id","event_id","endpoint_id");--> statement-breakpoint
DROP INDEX "webhook_deliveries_due";--> statement-breakpoint
CREATE INDEX "webhook_deliveries_due" ON "webhook_deliveries" USING btree ("merchant_id","endpoint_id","next_attempt_at") WHERE "webhook_deliveries"."next_attempt_at" is not null;--> statement-breakpoint
CREATE INDEX "webhook_deliveries_failed" ON "webhook_deliveries" USING btree ("merchant_id","endpoint_id","transaction_id","event_id") WHERE "webhook_deliveries"."next_attempt_at" is null and "webhook_deliveries"."delivered_at" is null;
