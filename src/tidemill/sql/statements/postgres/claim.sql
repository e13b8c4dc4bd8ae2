-- name: activate_due
-- Differs because rows are locked one by one, and those that others hold are passed over.
UPDATE {{jobs}} SET state = {{ready}} WHERE id = ANY(ARRAY(
    SELECT id FROM {{jobs}}
    WHERE state = {{scheduled}} AND queue = :queue AND due_at <= :now
    ORDER BY due_at, id LIMIT :limit FOR UPDATE SKIP LOCKED
))

-- name: ready_jobs
-- Differs because rows are locked one by one, passing over those that other claims hold; and because
-- a trip to the server is dear: what nothing speaks against is started here and now. Located by ctid:
-- 25 k/s, where the join by id does 17.5 k/s in batches of 100, and 174/s under a generic plan.
UPDATE {{jobs}}
SET state = CASE WHEN {{startable}} THEN {{running}} ELSE state END,
    worker_id = CASE WHEN {{startable}} THEN :worker ELSE worker_id END,
    started_at = CASE WHEN {{startable}} THEN :now ELSE started_at END,
    attempt = CASE WHEN {{startable}} THEN attempt + 1 ELSE attempt END
WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM {{jobs}}
    WHERE state = {{ready}} AND held IS NULL AND queue = :queue
    ORDER BY priority DESC, due_at, id LIMIT :limit FOR UPDATE SKIP LOCKED
))
RETURNING id, wire_name, queue, priority, due_at, lapses, lapses_base, retry, timeout, not_after,
    tenant, created_at, trace_context, payload, state = {{running}} AS started,
    CASE state WHEN {{running}} THEN attempt - 1 ELSE attempt END AS attempt

-- name: quarantine_job
-- Differs because one statement takes the whole batch.
WITH ended AS (
    UPDATE {{jobs}} AS j
    SET state = {{quarantined}}, held = NULL, attempt = e.attempt, worker_id = NULL, cause = e.cause,
        finished_at = e.finished_at, cancel_requested = NULL
    FROM unnest(:id::uuid[], :attempt::bigint[], :cause::text[], :finished_at::timestamptz[])
        AS e (id, attempt, cause, finished_at)
    WHERE j.id = e.id AND j.id = ANY(:id::uuid[]) AND j.state IN ({{ready}}, {{running}})
    RETURNING 1
)
SELECT count(*) AS count FROM ended
