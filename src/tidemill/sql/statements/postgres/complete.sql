-- name: unsettled_jobs
-- Differs because rows are locked one by one, and those that others hold are passed over.
SELECT id, attempt, unsettled, finished_at FROM {{jobs}} WHERE unsettled IS NOT NULL
ORDER BY worker_id, id LIMIT :limit FOR UPDATE SKIP LOCKED
