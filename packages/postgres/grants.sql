-- The privileges of the roles in roles.sql. Every migration run ends with this script, unless it would change nothing.
-- It does nothing if the roles do not exist.

do $$
begin
  if exists (select from pg_roles where rolname = 'order_gateway') then
    grant usage on schema public, drizzle to order_gateway;
    grant select on drizzle.__drizzle_migrations to order_gateway;
    grant select on accounts, brands, client_secrets, orders, order_metadata, payments, refused_payments, pending_refunds, events,
      event_feeds, webhook_endpoints, webhook_deliveries to order_gateway;
    -- The update privilege is needed to move the sequence past the ids of restored orders.
    grant usage, update on sequence service_order_id_blocks to order_gateway;
    grant insert on orders, order_metadata, payments, refused_payments, pending_refunds, events, event_feeds, webhook_deliveries
      to order_gateway;
    grant update (
      order_status, paid_at, payment_id, checkout_id, cancelled_at, lease_checkout_id, lease_attempt_id, lease_ends_at,
      ended_attempts, refused_payments, reversals, order_expires_at
    ) on orders to order_gateway;
    grant update (refunded_at) on refused_payments to order_gateway;
    grant delete on pending_refunds to order_gateway;
    -- RETENTION_DAYS erases these fields.
    grant update (
      erased_digest, order_note, customer_name, customer_email, customer_phone, customer_address_line1,
      customer_address_line2, customer_address_city, customer_address_state, customer_address_country,
      customer_address_postal_code, order_checksum, return_url, metadata
    ) on orders to order_gateway;
    grant update (note) on payments to order_gateway;
    -- A read of the feed assigns positions to events.
    grant update (position) on events to order_gateway;
    grant update (last_position) on event_feeds to order_gateway;
    grant delete on order_metadata to order_gateway;
    grant insert on audit_log to order_gateway;
    -- Citus needs this privilege for an insert within another statement.
    grant usage on sequence audit_log_id_seq to order_gateway;
    -- The console shows merchants who changed their payment instructions.
    grant select on instruction_changes to order_gateway;
    grant update (attempts, next_attempt_at, last_attempt_at, delivered_at, last_result) on webhook_deliveries
      to order_gateway;
    -- Merchants manage their endpoints, secrets and brands over the API. With SELF_SERVICE=off, a gateway does not use
    -- these privileges.
    grant insert, delete, update (
      endpoint_id, url, event_types, signing_secret, previous_secret, previous_ends_at, disabled_at, failing_since
    ) on webhook_endpoints to order_gateway;
    grant insert, update (ends_at) on client_secrets to order_gateway;
    grant insert, update on brands to order_gateway;
    -- The console needs these privileges. With CONSOLE=off, a gateway does not use them.
    grant select, insert, delete, update (last_seen_at) on console_sessions to order_gateway;
    grant select, insert, delete on console_links to order_gateway;
    -- Events are deleted after 30 days.
    grant delete on events, webhook_deliveries to order_gateway;
  end if;
  if exists (select from pg_roles where rolname = 'order_gateway_reader') then
    grant usage on schema public to order_gateway_reader;
    grant select on accounts, brands, refused_payments, events, event_feeds, webhook_deliveries, audit_log
      to order_gateway_reader;
    grant select (checkout_id, payment_id, merchant_id, order_id, paid_on) on payments to order_gateway_reader;
    grant select (
      merchant_id, service_order_id, created_at, order_id, checkout_id, payment_id, refund_id, provider_refund_id, amount,
      currency
    ) on pending_refunds to order_gateway_reader;
    grant select (id, account_id, created_at, ends_at) on client_secrets to order_gateway_reader;
    grant select (account_id, id, name, role, created_at, last_seen_at) on console_sessions to order_gateway_reader;
    grant select (
      merchant_id, endpoint_id, url, event_types, previous_ends_at, created_at, disabled_at, failing_since
    ) on webhook_endpoints to order_gateway_reader;
    grant select (
      merchant_id, service_order_id, order_status, created_at, order_id, order_amount, order_currency, service_type,
      order_expires_at, paid_at, payment_id, checkout_id, cancelled_at, lease_checkout_id, lease_attempt_id, lease_ends_at,
      refused_payments
    ) on orders to order_gateway_reader;
  end if;
end $$;
