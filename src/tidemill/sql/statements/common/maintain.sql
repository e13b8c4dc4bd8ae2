-- name: leases
SELECT id, lease_expires_at, lapsed_at, deregistered_at FROM {{workers}} WHERE id IN (:ids*)

-- name: lapsed_workers
SELECT id FROM {{workers}}
WHERE lapsed_at IS NULL AND deregistered_at IS NULL AND lease_expires_at <= :now
  AND lease <= :writable_for
ORDER BY id LIMIT :limit

-- name: mark_lapsed
UPDATE {{workers}} SET lapsed_at = :now
WHERE id IN (:ids*) AND lapsed_at IS NULL AND deregistered_at IS NULL AND lease_expires_at <= :now

-- name: expired_jobs
SELECT id FROM {{jobs}}
WHERE not_after IS NOT NULL AND attempt = 0 AND state IN ({{scheduled}}, {{ready}})
  AND not_after <= :now
ORDER BY not_after, id LIMIT :limit

-- name: activate_undue
-- Where a column holds nothing but what it is meant to, each job is due at some time.
SELECT id FROM {{jobs}} WHERE 1 = 0

-- name: known_names
SELECT wire_names FROM {{workers}}
WHERE lapsed_at IS NULL AND deregistered_at IS NULL AND lease_expires_at > :now

-- name: held_jobs
SELECT id FROM {{jobs}} WHERE held IS NOT NULL AND wire_name IN (:names*)
ORDER BY wire_name, id LIMIT :limit

-- name: known_held
SELECT 1 AS found FROM {{jobs}} WHERE held IS NOT NULL AND wire_name IN (:names*)
ORDER BY wire_name, id LIMIT 1

-- name: every_held_job
SELECT id FROM {{jobs}} WHERE held IS NOT NULL ORDER BY wire_name, id LIMIT :limit

-- name: unhold_jobs
UPDATE {{jobs}} SET held = NULL WHERE id IN (:ids*)
