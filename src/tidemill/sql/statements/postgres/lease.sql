-- name: beat
-- A heartbeat whole, in a statement that commits by itself. No row: the lease is not live. Else a row
-- for each attempt that runs, or one of nulls.
WITH renewed AS (
    UPDATE {{workers}} SET lease = :lease::interval, lease_expires_at = {{now}} + :lease::interval
    WHERE id = :worker AND lapsed_at IS NULL AND deregistered_at IS NULL AND lease_expires_at > {{now}}
    RETURNING id
)
SELECT {{now}} AS now, j.id, j.attempt, j.cancel_requested
FROM renewed LEFT JOIN {{jobs}} AS j ON j.state = {{running}} AND j.worker_id = renewed.id
ORDER BY j.id
