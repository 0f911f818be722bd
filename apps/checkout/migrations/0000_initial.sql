CREATE SCHEMA "checkout";
--> statement-breakpoint
CREATE TABLE "checkout"."attempts" (
	"attempt_id" text PRIMARY KEY NOT NULL,
	"order_token" text NOT NULL,
	"merchant_id" text NOT NULL,
	"order_id" text NOT NULL,
	"service_order_id" bigint NOT NULL,
	"provider" text NOT NULL,
	"connection_id" text,
	"method" text NOT NULL,
	"amount_hundredths" bigint NOT NULL,
	"currency" text NOT NULL,
	"locale" text NOT NULL,
	"state" text DEFAULT 'NEW' NOT NULL,
	"reason" text,
	"session_id" text,
	"session_url" text,
	"session_ends_at" timestamp (3) with time zone NOT NULL,
	"payment_id" text,
	"paid_at" timestamp (3) with time zone,
	"paid_hundredths" bigint,
	"paid_currency" text,
	"capture_before" timestamp (3) with time zone,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"changed_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"due_at" timestamp (3) with time zone DEFAULT now(),
	"leased_until" timestamp (3) with time zone,
	"failures" integer DEFAULT 0 NOT NULL,
	"looks" integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE TABLE "checkout"."audit_log" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "checkout"."audit_log_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"actor" text NOT NULL,
	"action" text NOT NULL,
	"merchant_id" text,
	"details" jsonb NOT NULL
);
--> statement-breakpoint
CREATE TABLE "checkout"."calls" (
	"call_id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "checkout"."calls_call_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"attempt_id" text NOT NULL,
	"purpose" text NOT NULL,
	"key" text NOT NULL,
	"request" json NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"error" text
);
--> statement-breakpoint
CREATE TABLE "checkout"."connections" (
	"connection_id" text PRIMARY KEY NOT NULL,
	"merchant_id" text NOT NULL,
	"provider" text NOT NULL,
	"mode" text NOT NULL,
	"account" text NOT NULL,
	"settings" jsonb DEFAULT '{}'::jsonb NOT NULL,
	"secrets" "bytea" NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"disconnected_at" timestamp (3) with time zone,
	"listed_until" timestamp (3) with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "checkout"."demo_payments" (
	"session_id" text PRIMARY KEY NOT NULL,
	"state" text DEFAULT 'open' NOT NULL,
	"ends_at" timestamp (3) with time zone NOT NULL,
	"amount_hundredths" bigint NOT NULL,
	"currency" text NOT NULL,
	"authorised_at" timestamp (3) with time zone
);
--> statement-breakpoint
CREATE UNIQUE INDEX "attempts_unfinished" ON "checkout"."attempts" USING btree ("order_token") WHERE "checkout"."attempts"."state" in ('NEW', 'OPEN', 'CLAIMED', 'VOIDING', 'ENDING', 'CAPTURED');--> statement-breakpoint
CREATE INDEX "attempts_of_order" ON "checkout"."attempts" USING btree ("order_token","created_at");--> statement-breakpoint
CREATE INDEX "attempts_due" ON "checkout"."attempts" USING btree ("due_at") WHERE "checkout"."attempts"."due_at" is not null;--> statement-breakpoint
CREATE INDEX "attempts_of_session" ON "checkout"."attempts" USING btree ("connection_id","session_id");--> statement-breakpoint
CREATE INDEX "calls_of_attempt" ON "checkout"."calls" USING btree ("attempt_id","purpose","call_id");--> statement-breakpoint
CREATE UNIQUE INDEX "connections_current" ON "checkout"."connections" USING btree ("merchant_id","provider") WHERE "checkout"."connections"."disconnected_at" is null;