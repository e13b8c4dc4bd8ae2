-- name: finish_plain
-- Differs because a row that a handler's own transaction holds must not keep its neighbours waiting:
-- rows are locked first, in id order, passing over those that others hold. They are named by id and
-- never by ctid, which a row touched meanwhile, say by a cancel request, no longer has.
UPDATE {{jobs}} SET state = {{succeeded}}, finished_at = :now, cancel_requested = NULL
WHERE id = ANY(ARRAY(
    SELECT id FROM {{jobs}}
    WHERE id IN (:ids*) AND state = {{running}} AND worker_id = :worker AND attempt = :attempt
      AND EXISTS (
        SELECT 1 FROM {{workers}} AS w
        WHERE w.id = :worker AND w.lapsed_at IS NULL AND w.deregistered_at IS NULL
          AND w.lease_expires_at > {{now}}
      )
    ORDER BY id FOR UPDATE SKIP LOCKED
))
RETURNING id

-- name: reported_jobs
-- Differs because rows are locked one by one, and those that others hold are passed over.
SELECT id, state, worker_id, attempt, retry, failures, failures_base, lapses, lapses_base,
    cancel_requested, started_at, finished_at, due_at, unsettled
FROM {{jobs}} WHERE id IN (:ids*) ORDER BY id FOR UPDATE SKIP LOCKED

-- name: end_attempt
-- Differs because one statement takes the whole batch. The ids are said twice: with the join alone
-- the planner reads the whole table once a batch is large. The fence is said so that no index but the
-- key's serves it: that of the running jobs would be read for all that a worker runs.
WITH ended AS (
    UPDATE {{jobs}} AS j
    SET state = e.state, worker_id = e.worker, due_at = e.due_at, cause = e.cause,
        finished_at = e.finished_at, failures = j.failures + e.failed, lapses = j.lapses + e.lapsed,
        output = e.output, cancel_requested = NULL
    FROM unnest(
        :id::uuid[], :holder::uuid[], :attempt::bigint[], :state::smallint[], :worker::uuid[],
        :due_at::timestamptz[], :cause::text[], :finished_at::timestamptz[], :failed::bigint[],
        :lapsed::bigint[], :output::bytea[]
    ) AS e (id, holder, attempt, state, worker, due_at, cause, finished_at, failed, lapsed, output)
    WHERE j.id = e.id AND j.id = ANY(:id::uuid[])
      AND (j.state, j.worker_id, j.attempt) IS NOT DISTINCT FROM ({{running}}, e.holder, e.attempt)
    RETURNING 1
)
SELECT count(*) AS count FROM ended

-- name: insert_attempt
-- Differs because one statement takes the whole batch.
WITH added AS (
    INSERT INTO {{attempts}} (
        job_id, attempt, worker_id, verdict, stale, started_at, ended_at,
        holder_worker, holder_attempt, holder_state, error_kind, error_message, error_detail
    )
    SELECT * FROM unnest(
        :job_id::uuid[], :attempt::bigint[], :worker::uuid[], :verdict::smallint[],
        :stale::boolean[], :started_at::timestamptz[], :ended_at::timestamptz[],
        :holder_worker::uuid[], :holder_attempt::bigint[], :holder_state::smallint[],
        :error_kind::text[], :error_message::text[], :error_detail::text[]
    )
    RETURNING 1
)
SELECT count(*) AS count FROM added

-- name: prune_attempts
-- Differs because one statement takes the whole batch.
WITH pruned AS (
    DELETE FROM {{attempts}} WHERE seq = ANY(ARRAY(
        SELECT old.seq
        FROM unnest(:job_id::uuid[], :stale::boolean[], :kept::bigint[]) AS p (job_id, stale, kept)
        CROSS JOIN LATERAL (
            SELECT seq FROM {{attempts}} AS a WHERE a.job_id = p.job_id AND a.stale = p.stale
            ORDER BY seq DESC OFFSET p.kept
        ) AS old
    ))
    RETURNING 1
)
SELECT count(*) AS count FROM pruned
