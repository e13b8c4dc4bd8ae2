-- name: examined_workers
SELECT w.id, w.host, w.pid, w.version, w.queues, w.wire_names, w.slots, w.started_at, w.lease,
    w.lease_expires_at, w.lapsed_at, w.deregistered_at,
    (SELECT count(*) FROM {{jobs}} AS j WHERE j.state = {{running}} AND j.worker_id = w.id) AS running
FROM {{workers}} AS w
WHERE w.deregistered_at IS NULL AND (w.lapsed_at IS NULL OR w.lapsed_at > :since)
ORDER BY w.lapsed_at IS NOT NULL, w.started_at DESC, w.id LIMIT :limit

-- name: backlog_ready
SELECT queue, count(*) AS n, min(due_at) AS oldest FROM {{jobs}}
WHERE state = {{ready}} AND held IS NULL GROUP BY queue ORDER BY n DESC, queue LIMIT :limit

-- name: backlog_due
SELECT queue, count(*) AS n, min(due_at) AS oldest FROM {{jobs}}
WHERE state = {{scheduled}} AND due_at <= :now GROUP BY queue ORDER BY n DESC, queue LIMIT :limit

-- name: stuck_abandoned
-- What runs is found first: in the order of ids a planner would walk through all that ever ran.
WITH running AS MATERIALIZED (
    SELECT id, wire_name, queue, attempt, worker_id FROM {{jobs}} WHERE state = {{running}}
)
SELECT j.id, j.wire_name, j.queue, j.attempt, j.worker_id,
    w.lease_expires_at AS since, count(*) OVER () AS total
FROM running AS j LEFT JOIN {{workers}} AS w ON w.id = j.worker_id
WHERE w.id IS NULL OR w.lease <= :now - w.lease_expires_at
ORDER BY j.id LIMIT :limit

-- name: stuck_overdue
WITH running AS MATERIALIZED (
    SELECT id, wire_name, queue, attempt, worker_id, started_at, timeout FROM {{jobs}}
    WHERE state = {{running}} AND timeout IS NOT NULL
)
SELECT j.id, j.wire_name, j.queue, j.attempt, j.worker_id, j.started_at + j.timeout AS since,
    count(*) OVER () AS total
FROM running AS j JOIN {{workers}} AS w ON w.id = j.worker_id
WHERE j.timeout <= :before - j.started_at
    AND w.lapsed_at IS NULL AND w.deregistered_at IS NULL AND w.lease_expires_at > :now
ORDER BY j.id LIMIT :limit

-- name: stuck_unsettled
SELECT id, wire_name, queue, attempt, worker_id, finished_at AS since, count(*) OVER () AS total
FROM {{jobs}} WHERE unsettled IS NOT NULL AND finished_at <= :before ORDER BY id LIMIT :limit

-- name: waiting_names
SELECT queue, wire_name, waiting, count(*) AS n FROM (
    SELECT * FROM (SELECT queue, wire_name, 'ready' AS waiting FROM {{jobs}}
        WHERE state = {{ready}} AND held IS NULL LIMIT :sample) AS ready
    UNION ALL SELECT * FROM (SELECT queue, wire_name, 'held' AS waiting FROM {{jobs}}
        WHERE held IS NOT NULL LIMIT :sample) AS held
    UNION ALL SELECT * FROM (SELECT queue, wire_name, 'scheduled' AS waiting FROM {{jobs}}
        WHERE state = {{scheduled}} LIMIT :sample) AS scheduled
) AS sampled
GROUP BY queue, wire_name, waiting ORDER BY n DESC, queue, wire_name, waiting LIMIT :limit

-- name: dead_letters
SELECT state, wire_name, cause, count(*) AS n, max(finished_at) AS newest,
    sum(CASE WHEN state = {{dead}} THEN count(*) ELSE 0 END) OVER () AS dead,
    sum(CASE WHEN state = {{quarantined}} THEN count(*) ELSE 0 END) OVER () AS quarantined,
    count(*) OVER () AS kinds, max(max(finished_at)) OVER () AS last_at
FROM (SELECT state, wire_name, cause, finished_at FROM {{jobs}} ORDER BY id DESC LIMIT :newest) AS j
WHERE state IN ({{dead}}, {{quarantined}})
GROUP BY state, wire_name, cause ORDER BY n DESC, state, wire_name, cause LIMIT :limit

-- name: database_notes
SELECT name, value FROM {{meta}} WHERE name IN ('unwritable_until', 'unwritable_for')
