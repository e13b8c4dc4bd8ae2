-- name: write_progress
-- Differs because one statement takes the whole batch. The ids are said twice, as in end_attempt.
WITH written AS (
    UPDATE {{jobs}} AS j SET progress = p.progress
    FROM unnest(:job_id::uuid[], :worker::uuid[], :attempt::bigint[], :progress::text[])
        AS p (job_id, worker, attempt, progress)
    WHERE j.id = p.job_id AND j.id = ANY(:job_id::uuid[])
      AND (j.worker_id, j.attempt) IS NOT DISTINCT FROM (p.worker, p.attempt)
    RETURNING 1
)
SELECT count(*) AS count FROM written

-- name: insert_line
-- Differs because one statement takes the whole batch.
WITH added AS (
    INSERT INTO {{log_lines}} (job_id, attempt, number, at, message, fields)
    SELECT * FROM unnest(
        :job_id::uuid[], :attempt::bigint[], :number::bigint[], :at::timestamptz[], :message::text[],
        :fields::text[]
    )
    ON CONFLICT DO NOTHING RETURNING 1
)
SELECT count(*) AS count FROM added

-- name: prune_lines
-- Differs because one statement takes the whole batch. The ids are said twice, as in end_attempt.
WITH pruned AS (
    DELETE FROM {{log_lines}} AS l USING unnest(:job_id::uuid[], :last::bigint[]) AS p (job_id, last)
    WHERE l.job_id = p.job_id AND l.job_id = ANY(:job_id::uuid[]) AND l.attempt <= p.last
    RETURNING 1
)
SELECT count(*) AS count FROM pruned
