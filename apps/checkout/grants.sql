-- The privileges of the role in database.sql. Every migration run ends with this script, which does nothing if the role
-- does not exist. Accounts are connected by the owner of the schema.

do $$
begin
  if exists (select from pg_roles where rolname = 'order_gateway_checkout') then
    grant usage on schema checkout, drizzle to order_gateway_checkout;
    grant select on drizzle.__checkout_migrations to order_gateway_checkout;
    grant select on checkout.connections, checkout.attempts, checkout.calls, checkout.demo_payments, checkout.transfers,
      checkout.credits to order_gateway_checkout;
    grant update (listed_until, reversed_until, compared_at) on checkout.connections to order_gateway_checkout;
    grant insert on checkout.attempts, checkout.calls, checkout.demo_payments, checkout.transfers to order_gateway_checkout;
    -- What was to be paid, and by which account, never changes.
    grant update (
      state, reason, session_id, session_url, session_ends_at, payment_id, paid_at, paid_hundredths, paid_currency,
      capture_before, changed_at, due_at, leased_until, failures, looks
    ) on checkout.attempts to order_gateway_checkout;
    grant update (error) on checkout.calls to order_gateway_checkout;
    grant update (state, authorised_at) on checkout.demo_payments to order_gateway_checkout;
    -- Credits that waited for the end of another payment are reported.
    grant update (state, reason, order_token) on checkout.credits to order_gateway_checkout;
    -- RETENTION_DAYS erases these.
    grant update (payer_digest) on checkout.credits to order_gateway_checkout;
    grant delete on checkout.calls to order_gateway_checkout;
    -- Only keys of disconnected accounts that nothing needs.
    grant execute on function checkout.erase_keys(text[]) to order_gateway_checkout;
  end if;
end $$;
