CREATE TABLE "console_links" (
	"token_digest" "bytea" PRIMARY KEY NOT NULL,
	"account_id" bigint NOT NULL,
	"name" text NOT NULL,
	"role" text NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "console_links_role" CHECK ("console_links"."role" in ('read', 'manage'))
);
--> statement-breakpoint
CREATE TABLE "console_sessions" (
	"account_id" bigint NOT NULL,
	"id" bigint GENERATED ALWAYS AS IDENTITY (sequence name "console_sessions_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"token_digest" "bytea" NOT NULL,
	"name" text NOT NULL,
	"role" text NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"last_seen_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "console_sessions_account_id_id_pk" PRIMARY KEY("account_id","id"),
	CONSTRAINT "console_sessions_token_digest_unique" UNIQUE("token_digest"),
	CONSTRAINT "console_sessions_role" CHECK ("console_sessions"."role" in ('read', 'manage'))
);
--> statement-breakpoint
ALTER TABLE "console_links" ADD CONSTRAINT "console_links_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "console_sessions" ADD CONSTRAINT "console_sessions_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;