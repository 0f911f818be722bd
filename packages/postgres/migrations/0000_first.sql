CREATE SEQUENCE "public"."service_order_id_blocks" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1;--> statement-breakpoint
CREATE TABLE "client_secrets" (
	"id" bigint GENERATED ALWAYS AS IDENTITY (sequence name "client_secrets_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"merchant_id" bigint NOT NULL,
	"secret_hash" "bytea" NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"ends_at" timestamp (3) with time zone,
	CONSTRAINT "client_secrets_merchant_id_id_pk" PRIMARY KEY("merchant_id","id")
);
--> statement-breakpoint
CREATE TABLE "merchants" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "merchants_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"name" text NOT NULL,
	"client_id" text NOT NULL,
	"checksum_mode" text DEFAULT 'versioned' NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "merchants_client_id_unique" UNIQUE("client_id")
);
--> statement-breakpoint
CREATE TABLE "orders" (
	"merchant_id" bigint NOT NULL,
	"service_order_id" bigint NOT NULL,
	"order_token" text NOT NULL,
	"order_status" text NOT NULL,
	"created_at" timestamp (3) with time zone NOT NULL,
	"order_id" text NOT NULL,
	"order_amount" numeric(15, 2) NOT NULL,
	"order_currency" text NOT NULL,
	"order_note" text NOT NULL,
	"service_type" text NOT NULL,
	"customer_name" text NOT NULL,
	"customer_email" text NOT NULL,
	"customer_phone" text NOT NULL,
	"customer_address_line1" text NOT NULL,
	"customer_address_line2" text NOT NULL,
	"customer_address_city" text NOT NULL,
	"customer_address_state" text NOT NULL,
	"customer_address_country" text NOT NULL,
	"customer_address_postal_code" text NOT NULL,
	"order_checksum" text NOT NULL,
	"return_url" text NOT NULL,
	CONSTRAINT "orders_merchant_id_order_id_pk" PRIMARY KEY("merchant_id","order_id"),
	CONSTRAINT "orders_merchant_id_service_order_id" UNIQUE("merchant_id","service_order_id"),
	CONSTRAINT "orders_amount_positive" CHECK ("orders"."order_amount" > 0)
);
--> statement-breakpoint
ALTER TABLE "client_secrets" ADD CONSTRAINT "client_secrets_merchant_id_merchants_id_fk" FOREIGN KEY ("merchant_id") REFERENCES "public"."merchants"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "orders" ADD CONSTRAINT "orders_merchant_id_merchants_id_fk" FOREIGN KEY ("merchant_id") REFERENCES "public"."merchants"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "orders_order_token" ON "orders" USING btree ("order_token");