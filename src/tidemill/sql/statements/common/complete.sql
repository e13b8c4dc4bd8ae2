-- name: complete_job
-- In the handler's own transaction, whose lock on the row is the fence from here to its end.
UPDATE {{jobs}}
SET state = {{succeeded}}, finished_at = {{now}}, output = :output, cancel_requested = NULL,
    unsettled = :unsettled
WHERE id = :id AND state = {{running}} AND worker_id = :worker AND attempt = :attempt
RETURNING id

-- name: job_holder
SELECT id, state, worker_id, attempt FROM {{jobs}} WHERE id = :id

-- name: unsettled_jobs
SELECT id, attempt, unsettled, finished_at FROM {{jobs}} WHERE unsettled IS NOT NULL
ORDER BY worker_id, id LIMIT :limit

-- name: settle_jobs
UPDATE {{jobs}} SET unsettled = NULL WHERE id IN (:ids*)
