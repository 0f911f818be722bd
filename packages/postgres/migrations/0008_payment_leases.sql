ALTER TABLE "orders" ADD COLUMN "lease_checkout_id" bigint;--> statement-breakpoint
ALTER TABLE "orders" ADD COLUMN "lease_attempt_id" text;--> statement-breakpoint
ALTER TABLE "orders" ADD COLUMN "lease_ends_at" timestamp (3) with time zone;