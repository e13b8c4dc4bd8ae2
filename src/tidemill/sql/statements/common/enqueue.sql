-- name: stored_jobs
SELECT id, state, digest FROM {{jobs}} WHERE id IN (:ids*)

-- name: key_holders
-- `past`: they are shown as they were when the transaction began, which here they never are.
SELECT id, state, idempotency_key, 0 AS past FROM {{jobs}}
WHERE tenant = :tenant AND idempotency_key IN (:keys*)
  AND idempotency_key IS NOT NULL AND state IN ({{non_terminal}})

-- name: insert_job
INSERT INTO {{jobs}} (
    id, wire_name, queue, priority, state, due_at, retry, timeout, not_after, idempotency_key,
    tenant, rerun_of, created_at, digest, trace_context, payload
) VALUES (
    :id, :wire_name, :queue, :priority, :state, :due_at, :retry, :timeout, :not_after, :idempotency_key,
    :tenant, :rerun_of, :created_at, :digest, :trace_context, :payload
)

-- name: insert_tag
INSERT INTO {{tags}} (job_id, tag, value) VALUES (:job_id, :tag, :value) ON CONFLICT DO NOTHING
