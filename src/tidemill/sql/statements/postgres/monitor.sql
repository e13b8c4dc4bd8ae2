-- name: newest_jobs
-- Differs because the type of a parameter that may be null has to be said.
SELECT id, wire_name, queue, priority, state, held, due_at, attempt, failures, failures_base, lapses,
    lapses_base, worker_id, started_at, finished_at, cause, cancel_requested, retry, timeout, not_after,
    idempotency_key, tenant, rerun_of, created_at, trace_context, unsettled, progress
FROM {{jobs}}
WHERE id < :before AND (state IN (:states*) OR (:strays AND state NOT IN ({{every_state}})))
  AND (:queue::text IS NULL OR queue = :queue::text)
  AND (:wire_name::text IS NULL OR wire_name = :wire_name::text)
ORDER BY id DESC LIMIT :limit
