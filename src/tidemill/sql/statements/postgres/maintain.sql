-- name: upkeep
-- Differs because a hundred thousand attempts may run: the index is asked for one worker after the
-- other, and never for every attempt.
WITH RECURSIVE holders AS (
    (
        SELECT j.worker_id FROM {{jobs}} AS j WHERE j.state = {{running}}
        ORDER BY j.worker_id LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT j.worker_id FROM {{jobs}} AS j
        WHERE j.state = {{running}} AND j.worker_id > h.worker_id
        ORDER BY j.worker_id LIMIT 1
    )
    FROM holders AS h WHERE h.worker_id IS NOT NULL
)
SELECT {{now}} AS now,
    EXISTS (
        SELECT 1 FROM holders AS h LEFT JOIN {{workers}} AS w ON w.id = h.worker_id
        WHERE h.worker_id IS NOT NULL
          AND (w.id IS NULL OR w.lapsed_at IS NOT NULL OR w.deregistered_at IS NOT NULL
            OR w.lease_expires_at <= {{now}})
    ) AS lapsed_jobs,
    EXISTS (
        SELECT 1 FROM {{workers}}
        WHERE lapsed_at IS NULL AND deregistered_at IS NULL AND lease_expires_at <= {{now}}
    ) AS lapsed_workers,
    (
        SELECT not_after FROM {{jobs}}
        WHERE not_after IS NOT NULL AND attempt = 0 AND state IN ({{scheduled}}, {{ready}})
        ORDER BY not_after LIMIT 1
    ) <= {{now}} AS expired,
    (SELECT wire_name FROM {{jobs}} WHERE held IS NOT NULL ORDER BY wire_name, id LIMIT 1)
        IS NOT NULL AS held,
    (SELECT id FROM {{jobs}} WHERE unsettled IS NOT NULL ORDER BY worker_id, id LIMIT 1)
        IS NOT NULL AS unsettled,
    false AS undue

-- name: lapsed_workers
-- Differs because nobody can keep everybody from writing: an expired lease is a lapsed one.
SELECT id FROM {{workers}}
WHERE lapsed_at IS NULL AND deregistered_at IS NULL AND lease_expires_at <= :now
ORDER BY id LIMIT :limit

-- name: lapsed_jobs
-- Differs because the index is asked for one worker after the other, as above, and because rows are
-- locked one by one, passing over those that others hold. The program reads the leases of what it
-- locked once more: a row may have been swept and claimed anew since this statement began.
WITH RECURSIVE holders AS (
    (
        SELECT j.worker_id FROM {{jobs}} AS j WHERE j.state = {{running}}
        ORDER BY j.worker_id LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT j.worker_id FROM {{jobs}} AS j
        WHERE j.state = {{running}} AND j.worker_id > h.worker_id
        ORDER BY j.worker_id LIMIT 1
    )
    FROM holders AS h WHERE h.worker_id IS NOT NULL
)
SELECT id, state, worker_id, attempt, retry, failures, failures_base, lapses, lapses_base,
    cancel_requested, started_at, due_at
FROM {{jobs}}
WHERE state = {{running}} AND id = ANY(ARRAY(
    SELECT lapsing.id
    FROM holders AS h LEFT JOIN {{workers}} AS w ON w.id = h.worker_id
    CROSS JOIN LATERAL (
        SELECT j.id FROM {{jobs}} AS j
        WHERE j.state = {{running}} AND j.worker_id = h.worker_id ORDER BY j.id LIMIT :limit
    ) AS lapsing
    WHERE w.id IS NULL OR w.lapsed_at IS NOT NULL OR w.deregistered_at IS NOT NULL
        OR w.lease_expires_at <= :now
    ORDER BY lapsing.id LIMIT :limit
))
ORDER BY id FOR UPDATE SKIP LOCKED

-- name: expired_jobs
-- Differs because rows are locked one by one, and those that others hold are passed over.
SELECT id FROM {{jobs}}
WHERE not_after IS NOT NULL AND attempt = 0 AND state IN ({{scheduled}}, {{ready}})
  AND not_after <= :now
ORDER BY not_after, id LIMIT :limit FOR UPDATE SKIP LOCKED

-- name: held_jobs
-- Differs because rows are locked one by one, and those that others hold are passed over.
SELECT id FROM {{jobs}} WHERE held IS NOT NULL AND wire_name IN (:names*)
ORDER BY wire_name, id LIMIT :limit FOR UPDATE SKIP LOCKED

-- name: every_held_job
-- Differs because rows are locked one by one, and those that others hold are passed over.
SELECT id FROM {{jobs}} WHERE held IS NOT NULL
ORDER BY wire_name, id LIMIT :limit FOR UPDATE SKIP LOCKED
