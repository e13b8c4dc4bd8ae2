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
SELECT id, wire_name, queue, priority, due_at, attempt, lapses, lapses_base, retry, timeout, not_after,
    tenant, created_at, trace_context, payload
FROM {{jobs}}
WHERE state = {{ready}} AND held IS NULL AND queue = :queue
ORDER BY priority DESC, due_at, id LIMIT :limit

-- name: any_ready
SELECT 1 AS found FROM {{jobs}}
WHERE state = {{ready}} AND held IS NULL AND queue = :queue LIMIT 1

-- name: start_jobs
UPDATE {{jobs}}
SET state = {{running}}, worker_id = :worker, attempt = attempt + 1, started_at = :now
WHERE id IN (:ids*)

-- name: hold_jobs
UPDATE {{jobs}} SET held = :held WHERE id IN (:ids*)

-- name: expire_jobs
UPDATE {{jobs}} SET state = {{cancelled}}, held = NULL, cause = :cause, finished_at = :now
WHERE id IN (:ids*)

-- name: bury_jobs
UPDATE {{jobs}} SET state = {{dead}}, cause = :cause, finished_at = :now WHERE id IN (:ids*)
