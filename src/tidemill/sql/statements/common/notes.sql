-- name: write_progress
-- Of an attempt that the locked row names, running or succeeded: so it was judged.
UPDATE {{jobs}} SET progress = :progress
WHERE id = :job_id AND worker_id = :worker AND attempt = :attempt

-- name: insert_line
INSERT INTO {{log_lines}} (job_id, attempt, number, at, message, fields)
VALUES (:job_id, :attempt, :number, :at, :message, :fields) ON CONFLICT DO NOTHING

-- name: prune_lines
DELETE FROM {{log_lines}} WHERE job_id = :job_id AND attempt <= :last

-- name: job_log
SELECT attempt, number, at, message, fields FROM {{log_lines}}
WHERE job_id = :id AND (attempt, number) > (:attempt, :number) AND (:every OR attempt = :only)
ORDER BY attempt, number LIMIT :limit

-- name: job_log_end
SELECT attempt, number, at, message, fields FROM {{log_lines}} WHERE job_id = :id
ORDER BY attempt DESC, number DESC LIMIT :limit
