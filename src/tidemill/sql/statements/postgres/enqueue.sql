-- name: insert_job
-- Differs because one statement takes the whole batch, and because another transaction may be storing
-- the same id or key: this one waits for its end, and then says which rows it stored itself.
WITH added AS (
    INSERT INTO {{jobs}} (
        id, wire_name, queue, priority, state, due_at, retry, timeout, not_after, idempotency_key,
        tenant, rerun_of, created_at, digest, trace_context, payload
    )
    SELECT * FROM unnest(
        :id::uuid[], :wire_name::text[], :queue::text[], :priority::smallint[], :state::smallint[],
        :due_at::timestamptz[], :retry::text[], :timeout::interval[], :not_after::timestamptz[],
        :idempotency_key::text[], :tenant::text[], :rerun_of::uuid[], :created_at::timestamptz[],
        :digest::bytea[], :trace_context::text[], :payload::bytea[]
    )
    ON CONFLICT DO NOTHING RETURNING id
)
SELECT count(*) AS count, array_agg(id) AS added FROM added

-- name: key_holders
-- Differs because a user's transaction may show the past, as it does above READ COMMITTED.
SELECT id, state, idempotency_key,
    current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') AS past
FROM {{jobs}}
WHERE tenant = :tenant AND idempotency_key IN (:keys*)
  AND idempotency_key IS NOT NULL AND state IN ({{non_terminal}})

-- name: insert_one
-- One plain job that is due now, in a statement that commits by itself: it reads the clock too.
WITH clock AS MATERIALIZED (SELECT {{now}} AS now)
INSERT INTO {{jobs}} (
    id, wire_name, queue, priority, state, due_at, retry, timeout, tenant, rerun_of, created_at,
    digest, trace_context, payload
)
SELECT :id, :wire_name, :queue, :priority, {{ready}}, clock.now, :retry, :timeout, :tenant,
    :rerun_of, clock.now, :digest, :trace_context, :payload
FROM clock
ON CONFLICT DO NOTHING RETURNING id

-- name: insert_tag
-- Differs because one statement takes the whole batch.
WITH added AS (
    INSERT INTO {{tags}} (job_id, tag, value)
    SELECT * FROM unnest(:job_id::uuid[], :tag::text[], :value::text[])
    ON CONFLICT DO NOTHING RETURNING 1
)
SELECT count(*) AS count FROM added
