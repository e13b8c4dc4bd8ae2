-- name: lapsed_jobs
SELECT j.id, j.state, j.worker_id, j.attempt, j.retry, j.failures, j.failures_base, j.lapses,
    j.lapses_base, j.cancel_requested, j.started_at, j.due_at
FROM {{jobs}} AS j LEFT JOIN {{workers}} AS w ON w.id = j.worker_id
WHERE j.state = {{running}}
  AND (w.id IS NULL OR w.lapsed_at IS NOT NULL OR w.deregistered_at IS NOT NULL
    OR w.lease_expires_at <= :now)
ORDER BY j.id LIMIT :limit

-- name: lapsed_workers
SELECT id FROM {{workers}}
WHERE lapsed_at IS NULL AND deregistered_at IS NULL AND lease_expires_at <= :now LIMIT :limit

-- name: mark_lapsed
UPDATE {{workers}} SET lapsed_at = :now WHERE id IN (:ids*)

-- name: expired_jobs
SELECT id FROM {{jobs}}
WHERE not_after IS NOT NULL AND attempt = 0 AND state IN ({{scheduled}}, {{ready}})
  AND not_after <= :now
ORDER BY not_after LIMIT :limit

-- name: known_names
SELECT wire_names FROM {{workers}}
WHERE lapsed_at IS NULL AND deregistered_at IS NULL AND lease_expires_at > :now

-- name: held_jobs
SELECT id FROM {{jobs}} WHERE held IS NOT NULL AND wire_name IN (:names*)
ORDER BY wire_name, id LIMIT :limit

-- name: unhold_jobs
UPDATE {{jobs}} SET held = NULL WHERE id IN (:ids*)
