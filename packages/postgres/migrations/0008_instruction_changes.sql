CREATE VIEW "instruction_changes" AS (
  select id, created_at, actor, client_id, instructions from (
    select id, created_at, actor, client_id, details->>'payment_instructions' as instructions,
      lag(details->>'payment_instructions', 1, '') over (partition by client_id order by id) as previous
    from audit_log where action = 'brand' and details ? 'payment_instructions'
  ) as sent where instructions <> previous);
