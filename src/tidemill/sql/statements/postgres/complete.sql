-- name: unsettled_jobs
-- Differs because rows are locked one by one, and those that others hold are passed over.
SELECT id, unsettled FROM {{jobs}} WHERE unsettled IS NOT NULL
ORDER BY worker_id, id LIMIT :limit FOR UPDATE SKIP LOCKED

-- name: unsettled_job
-- Differs because of the same.
SELECT id, unsettled FROM {{jobs}} WHERE id = :id FOR UPDATE SKIP LOCKED
