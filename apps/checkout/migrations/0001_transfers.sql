CREATE TABLE "checkout"."credits" (
	"credit_id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "checkout"."credits_credit_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"account" text NOT NULL,
	"payment_id" text NOT NULL,
	"amount_hundredths" bigint NOT NULL,
	"currency" text NOT NULL,
	"payer_digest" text NOT NULL,
	"reference" text,
	"paid_at" timestamp (3) with time zone,
	"paid_on" date NOT NULL,
	"order_token" text,
	"state" text NOT NULL,
	"reason" text,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "credits_payment_id_unique" UNIQUE("payment_id")
);
--> statement-breakpoint
CREATE TABLE "checkout"."statements" (
	"statement_id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "checkout"."statements_statement_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"account" text NOT NULL,
	"kind" text NOT NULL,
	"number" bigint,
	"written_on" date,
	"read_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "statements_once" UNIQUE NULLS NOT DISTINCT("account","kind","number","written_on")
);
--> statement-breakpoint
CREATE TABLE "checkout"."transfers" (
	"reference" text PRIMARY KEY NOT NULL,
	"order_token" text NOT NULL,
	"merchant_id" text NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE INDEX "credits_of_account" ON "checkout"."credits" USING btree ("account","amount_hundredths","paid_on");--> statement-breakpoint
CREATE INDEX "credits_waiting" ON "checkout"."credits" USING btree ("credit_id") WHERE "checkout"."credits"."state" = 'WAITING';