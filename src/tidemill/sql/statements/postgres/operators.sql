-- name: asked_jobs
-- Differs because rows are locked one by one, in id order: an action waits for whoever holds one.
SELECT id, state, tenant, idempotency_key, cancel_requested, cause
FROM {{jobs}} WHERE id IN (:ids*) ORDER BY id FOR UPDATE
