-- name: upkeep
-- Differs because a lease may be no instant of the calendar, as below, and what a job is due at no
-- instant at all: such a job stands behind all others of its queue, so the last of each is looked at.
-- It says whether a round of upkeep would find anything; `held` says only that something is held.
WITH RECURSIVE waiting (queue) AS (
    SELECT min(queue) FROM {{jobs}} WHERE state = {{scheduled}}
    UNION ALL
    SELECT (SELECT min(j.queue) FROM {{jobs}} AS j WHERE j.state = {{scheduled}} AND j.queue > w.queue)
    FROM waiting AS w WHERE w.queue IS NOT NULL
)
SELECT {{now}} AS now,
    EXISTS (
        SELECT 1 FROM {{jobs}} AS j LEFT JOIN {{workers}} AS w ON w.id = j.worker_id
        WHERE j.state = {{running}}
          AND (w.id IS NULL OR w.lapsed_at IS NOT NULL OR w.deregistered_at IS NOT NULL
            OR w.lease_expires_at <= {{now}}
            OR w.lease_expires_at NOT BETWEEN 0 AND {{calendar_end}}
            OR w.lease NOT BETWEEN 0 AND {{calendar_end}})
    ) AS lapsed_jobs,
    EXISTS (
        SELECT 1 FROM {{workers}}
        WHERE lapsed_at IS NULL AND deregistered_at IS NULL AND lease_expires_at <= {{now}}
    ) AS lapsed_workers,
    EXISTS (
        SELECT 1 FROM {{jobs}}
        WHERE not_after IS NOT NULL AND attempt = 0 AND state IN ({{scheduled}}, {{ready}})
          AND not_after <= {{now}}
    ) AS expired,
    (SELECT wire_name FROM {{jobs}} WHERE held IS NOT NULL ORDER BY wire_name, id LIMIT 1)
        IS NOT NULL AS held,
    (SELECT id FROM {{jobs}} WHERE unsettled IS NOT NULL ORDER BY worker_id, id LIMIT 1)
        IS NOT NULL AS unsettled,
    EXISTS (
        SELECT 1 FROM waiting AS w WHERE w.queue IS NOT NULL AND EXISTS (
            SELECT 1 FROM {{jobs}} AS j
            WHERE j.state = {{scheduled}} AND j.queue = w.queue AND j.due_at >= ''
        )
    ) AS undue

-- name: activate_undue
-- Differs because a column holds whatever was put into it. As above; the claim ends what is found.
WITH RECURSIVE waiting (queue) AS (
    SELECT min(queue) FROM {{jobs}} WHERE state = {{scheduled}}
    UNION ALL
    SELECT (SELECT min(j.queue) FROM {{jobs}} AS j WHERE j.state = {{scheduled}} AND j.queue > w.queue)
    FROM waiting AS w WHERE w.queue IS NOT NULL
)
UPDATE {{jobs}} SET state = {{ready}} WHERE id IN (
    SELECT j.id FROM waiting AS w CROSS JOIN {{jobs}} AS j  -- in this order
    WHERE j.state = {{scheduled}} AND j.queue = w.queue AND j.due_at >= '' LIMIT :limit
)
RETURNING id

-- name: lapsed_jobs
-- Differs because the planner, without statistics, walks the whole table to spare itself the sort, so
-- the index of the running jobs is named. Of an expired lease it is asked whether a block may have cost
-- it; and one that is no instant of the calendar, or has no length, is none.
SELECT j.id, j.state, j.worker_id, j.attempt, j.retry, j.failures, j.failures_base, j.lapses,
    j.lapses_base, j.cancel_requested, j.started_at, j.due_at
FROM {{jobs}} AS j INDEXED BY {{jobs}}_running LEFT JOIN {{workers}} AS w ON w.id = j.worker_id
WHERE j.state = {{running}}
  AND (w.id IS NULL OR w.deregistered_at IS NOT NULL
    OR (w.lease <= :writable_for AND (w.lapsed_at IS NOT NULL OR w.lease_expires_at <= :now))
    OR w.lease_expires_at NOT BETWEEN 0 AND {{calendar_end}}
    OR w.lease NOT BETWEEN 0 AND {{calendar_end}})
ORDER BY j.id LIMIT :limit
