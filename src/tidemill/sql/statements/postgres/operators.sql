-- name: asked_jobs
-- Differs because rows are locked one by one, and those that others hold are passed over.
SELECT id, state, tenant, idempotency_key, cancel_requested, cause
FROM {{jobs}} WHERE id IN (:ids*) ORDER BY id FOR UPDATE SKIP LOCKED

-- name: wait_for_holders
-- Differs because others may hold a row, most of them for a moment.
SELECT pg_sleep(extract(epoch FROM :pause::interval))
