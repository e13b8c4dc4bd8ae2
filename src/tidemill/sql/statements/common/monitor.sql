-- name: job
SELECT id, wire_name, queue, priority, state, held, due_at, attempt, failures, failures_base, lapses,
    lapses_base, worker_id, started_at, finished_at, cause, cancel_requested, retry, timeout, not_after,
    idempotency_key, tenant, rerun_of, created_at, trace_context, unsettled, progress, payload, output
FROM {{jobs}} WHERE id = :id

-- name: job_tags
SELECT tag, value FROM {{tags}} WHERE job_id = :id

-- name: job_attempts
SELECT job_id, attempt, worker_id, verdict, stale, started_at, ended_at,
    holder_worker, holder_attempt, holder_state, error_kind, error_message, error_detail
FROM {{attempts}} WHERE job_id = :id ORDER BY seq

-- name: job_end
SELECT state, cause, output FROM {{jobs}} WHERE id = :id

-- name: newest_jobs
SELECT id, wire_name, queue, priority, state, held, due_at, attempt, failures, failures_base, lapses,
    lapses_base, worker_id, started_at, finished_at, cause, cancel_requested, retry, timeout, not_after,
    idempotency_key, tenant, rerun_of, created_at, trace_context, unsettled, progress
FROM {{jobs}}
WHERE id < :before AND (state IN (:states*) OR (:strays AND state NOT IN ({{every_state}})))
  AND (:queue IS NULL OR queue = :queue) AND (:wire_name IS NULL OR wire_name = :wire_name)
ORDER BY id DESC LIMIT :limit

-- name: count_jobs
SELECT queue, state, count(*) AS n FROM {{jobs}} GROUP BY queue, state ORDER BY queue, state

-- name: count_ready
SELECT queue, count(*) AS n FROM {{jobs}} WHERE state = {{ready}} AND held IS NULL GROUP BY queue

-- name: count_held
SELECT queue, count(*) AS n FROM {{jobs}} WHERE held IS NOT NULL GROUP BY queue

-- name: count_scheduled
SELECT queue, count(*) AS n FROM {{jobs}} WHERE state = {{scheduled}} GROUP BY queue

-- name: count_running
SELECT queue, count(*) AS n FROM {{jobs}} WHERE state = {{running}} GROUP BY queue

-- name: paused_queues
SELECT name FROM {{queues}} WHERE paused

-- name: workers
SELECT w.id, w.host, w.pid, w.version, w.queues, w.wire_names, w.slots, w.started_at, w.lease_expires_at,
    w.lapsed_at, w.deregistered_at,
    (SELECT count(*) FROM {{jobs}} AS j WHERE j.state = {{running}} AND j.worker_id = w.id) AS running
FROM {{workers}} AS w WHERE w.deregistered_at IS NULL ORDER BY w.started_at, w.id
