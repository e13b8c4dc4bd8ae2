-- name: lapsed_jobs
-- Differs because the planner, without statistics, walks the whole table to spare itself the sort, so
-- the index of the running jobs is named. Of an expired lease it is asked whether a block may have cost it.
SELECT j.id, j.state, j.worker_id, j.attempt, j.retry, j.failures, j.failures_base, j.lapses,
    j.lapses_base, j.cancel_requested, j.started_at, j.due_at
FROM {{jobs}} AS j INDEXED BY {{jobs}}_running LEFT JOIN {{workers}} AS w ON w.id = j.worker_id
WHERE j.state = {{running}}
  AND (w.id IS NULL OR w.deregistered_at IS NOT NULL
    OR (w.lease <= :writable_for AND (w.lapsed_at IS NOT NULL OR w.lease_expires_at <= :now)))
ORDER BY j.id LIMIT :limit
