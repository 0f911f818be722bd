-- The role of the running checkout may not change keys. This function, which runs with the rights of the owner, only
-- erases those that nothing needs: not those of connected accounts, of attempts that are continued or looked at again,
-- or of the connections with pending refunds, which the gateway knows.
CREATE FUNCTION "checkout"."erase_keys"("with_refunds" text[]) RETURNS integer
LANGUAGE sql SECURITY DEFINER SET search_path = '' AS $$
  with erased as (
    update checkout.connections as unneeded set secrets = ''
    -- An order page that was loaded before may still start an attempt.
    where disconnected_at < now() - interval '1 hour' and secrets <> ''
      and connection_id <> all(with_refunds)
      and not exists (
        select from checkout.attempts where connection_id = unneeded.connection_id and due_at is not null
      )
      -- An account that was connected again refunds its earlier payments too.
      and not exists (
        select from checkout.connections as connected
        where (connected.merchant_id, connected.provider, connected.account)
          = (unneeded.merchant_id, unneeded.provider, unneeded.account) and connected.disconnected_at is null
      )
    returning *
  ), logged as (
    insert into checkout.audit_log (actor, action, merchant_id, details)
    select 'checkout', 'erase_key', merchant_id,
      jsonb_build_object('connection_id', connection_id, 'provider', provider, 'mode', mode, 'account', account)
    from erased
  )
  select count(*)::int from erased
$$;--> statement-breakpoint
REVOKE EXECUTE ON FUNCTION "checkout"."erase_keys"(text[]) FROM PUBLIC;
