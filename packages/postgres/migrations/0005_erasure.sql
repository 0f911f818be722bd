ALTER TABLE "orders" ADD COLUMN "erased_digest" "bytea";--> statement-breakpoint
CREATE INDEX "orders_not_erased" ON "orders" USING btree ("created_at") WHERE "orders"."erased_digest" is null;