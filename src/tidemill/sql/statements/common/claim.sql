-- name: opening
-- All that an exchange has to know before it begins, and all that an idle one needs: `cancels` and
-- `paused` say only that there are some. What waits in a paused queue does not count.
SELECT {{now}} AS now, w.lease_expires_at, w.lapsed_at, w.deregistered_at,
    (
        SELECT min(first.due_at) FROM (
            SELECT (
                SELECT min(j.due_at) FROM {{jobs}} AS j
                WHERE j.state = {{scheduled}} AND j.queue = each.value
            ) AS due_at
            FROM {{each_queue}}
            WHERE NOT EXISTS (SELECT 1 FROM {{queues}} AS q WHERE q.name = each.value AND q.paused)
        ) AS first
    ) AS next_due,
    EXISTS (
        SELECT 1 FROM {{each_queue}} WHERE EXISTS (
            SELECT 1 FROM {{jobs}} AS j
            WHERE j.state = {{ready}} AND j.held IS NULL AND j.queue = each.value
        )
        AND NOT EXISTS (SELECT 1 FROM {{queues}} AS q WHERE q.name = each.value AND q.paused)
    ) AS ready,
    EXISTS (
        SELECT 1 FROM {{each_queue}} JOIN {{queues}} AS q ON q.name = each.value WHERE q.paused
    ) AS paused,
    EXISTS (
        SELECT 1 FROM {{jobs}} AS j
        WHERE j.state = {{running}} AND j.worker_id = :worker AND j.cancel_requested IS NOT NULL
    ) AS cancels
FROM (SELECT 1 AS one) AS here LEFT JOIN {{workers}} AS w ON w.id = :worker

-- name: paused_queues_of
SELECT name FROM {{queues}} WHERE paused AND name IN (:queues*)

-- name: next_due
SELECT min(due_at) AS due_at FROM {{jobs}} WHERE state = {{scheduled}} AND queue = :queue

-- name: activate_due
UPDATE {{jobs}} SET state = {{ready}} WHERE id IN (
    SELECT id FROM {{jobs}}
    WHERE state = {{scheduled}} AND queue = :queue AND due_at <= :now
    ORDER BY due_at, id LIMIT :limit
)

-- name: ready_jobs
-- `started` says that this statement has started the job already: here it never has.
SELECT id, wire_name, queue, priority, due_at, attempt, lapses, lapses_base, retry, timeout, not_after,
    tenant, created_at, trace_context, payload, 0 AS started
FROM {{jobs}}
WHERE state = {{ready}} AND held IS NULL AND queue = :queue
ORDER BY priority DESC, due_at, id LIMIT :limit

-- name: start_jobs
UPDATE {{jobs}}
SET state = {{running}}, worker_id = :worker, attempt = attempt + 1, started_at = :now
WHERE id IN (:ids*)

-- name: hold_jobs
UPDATE {{jobs}} SET held = :held WHERE id IN (:ids*)

-- name: expire_jobs
UPDATE {{jobs}} SET state = {{cancelled}}, held = NULL, cause = :cause, finished_at = :now
WHERE id IN (:ids*)

-- name: quarantine_job
UPDATE {{jobs}}
SET state = {{quarantined}}, held = NULL, attempt = :attempt, worker_id = NULL, cause = :cause,
    finished_at = :finished_at, cancel_requested = NULL
WHERE id = :id AND state IN ({{ready}}, {{running}})

-- name: bury_jobs
UPDATE {{jobs}} SET state = {{dead}}, cause = :cause, finished_at = :now WHERE id IN (:ids*)
