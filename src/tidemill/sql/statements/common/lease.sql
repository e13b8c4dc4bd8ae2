-- name: worker_lease
-- One row, of nulls when there is no such worker.
SELECT {{now}} AS now, w.lease_expires_at, w.lapsed_at, w.deregistered_at
FROM (SELECT 1 AS one) AS here LEFT JOIN {{workers}} AS w ON w.id = :worker

-- name: worker
SELECT id, host, pid, version, queues, wire_names, slots, started_at, lease_expires_at, lapsed_at,
    deregistered_at
FROM {{workers}} WHERE id = :worker

-- name: insert_worker
INSERT INTO {{workers}} (
    id, host, pid, version, queues, wire_names, slots, started_at, lease, lease_expires_at
) VALUES (:id, :host, :pid, :version, :queues, :wire_names, :slots, :now, :lease, :expires_at)

-- name: end_worker
UPDATE {{workers}} SET deregistered_at = :now WHERE id = :worker AND deregistered_at IS NULL

-- name: renew_lease
-- Live, said again: a sweep may have marked the worker since its row was read.
UPDATE {{workers}} SET lease = :lease, lease_expires_at = :expires_at
WHERE id = :worker AND lapsed_at IS NULL AND deregistered_at IS NULL AND lease_expires_at > {{now}}
RETURNING id

-- name: running_jobs
SELECT id, attempt, cancel_requested FROM {{jobs}}
WHERE state = {{running}} AND worker_id = :worker ORDER BY id

-- name: cancel_requests
SELECT id, attempt, cancel_requested FROM {{jobs}}
WHERE state = {{running}} AND worker_id = :worker AND cancel_requested IS NOT NULL ORDER BY id

-- name: note_lapse
UPDATE {{workers}} SET lapsed_at = :now
WHERE id = :worker AND lapsed_at IS NULL AND deregistered_at IS NULL
