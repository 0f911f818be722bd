DROP INDEX "events_created_at";--> statement-breakpoint
CREATE INDEX "events_created_at" ON "events" USING btree ("created_at");