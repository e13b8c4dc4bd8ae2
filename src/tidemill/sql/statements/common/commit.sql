-- name: finish_plain
-- The fence and the write in one: what it does not return was not written, and is looked at.
UPDATE {{jobs}} SET state = {{succeeded}}, finished_at = :now, cancel_requested = NULL
WHERE id IN (:ids*) AND state = {{running}} AND worker_id = :worker AND attempt = :attempt
  AND EXISTS (
    SELECT 1 FROM {{workers}} AS w
    WHERE w.id = :worker AND w.lapsed_at IS NULL AND w.deregistered_at IS NULL
      AND w.lease_expires_at > {{now}}
  )
RETURNING id

-- name: reported_jobs
SELECT id, state, worker_id, attempt, retry, failures, failures_base, lapses, lapses_base,
    cancel_requested, started_at, finished_at, due_at, unsettled
FROM {{jobs}} WHERE id IN (:ids*)

-- name: recorded_verdict
SELECT verdict FROM {{attempts}}
WHERE job_id = :job_id AND {{counted}} AND attempt = :attempt AND worker_id = :worker

-- name: end_attempt
UPDATE {{jobs}}
SET state = :state, worker_id = :worker, due_at = :due_at, cause = :cause, finished_at = :finished_at,
    failures = failures + :failed, lapses = lapses + :lapsed, output = :output,
    cancel_requested = NULL
WHERE id = :id AND state = {{running}} AND worker_id = :holder AND attempt = :attempt

-- name: insert_attempt
INSERT INTO {{attempts}} (
    job_id, attempt, worker_id, verdict, stale, started_at, ended_at,
    holder_worker, holder_attempt, holder_state, error_kind, error_message, error_detail
) VALUES (
    :job_id, :attempt, :worker, :verdict, :stale, :started_at, :ended_at,
    :holder_worker, :holder_attempt, :holder_state, :error_kind, :error_message, :error_detail
)

-- name: prune_attempts
DELETE FROM {{attempts}} WHERE job_id = :job_id AND stale = :stale AND seq <= (
    SELECT seq FROM {{attempts}} WHERE job_id = :job_id AND stale = :stale
    ORDER BY seq DESC LIMIT 1 OFFSET :kept
)
