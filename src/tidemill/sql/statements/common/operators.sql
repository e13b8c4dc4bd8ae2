-- name: past_action
SELECT kind, answer FROM {{audit}} WHERE action_id = :action

-- name: insert_action
INSERT INTO {{audit}} (action_id, kind, actor, at, answer) VALUES (:action, :kind, :actor, :at, :answer)

-- name: asked_jobs
SELECT id, state, tenant, idempotency_key, cancel_requested, cause FROM {{jobs}} WHERE id IN (:ids*)

-- name: wait_for_holders
-- Nobody holds a row where one transaction writes at a time, so there is nothing to wait for.
SELECT :pause AS waited

-- name: cancel_job
UPDATE {{jobs}} SET state = {{cancelled}}, held = NULL, cause = :cause, finished_at = :now WHERE id = :id

-- name: request_cancel
UPDATE {{jobs}} SET cancel_requested = :actor WHERE id = :id

-- name: requeue_job
UPDATE {{jobs}}
SET state = {{ready}}, held = NULL, due_at = :now, not_after = NULL, cause = NULL,
    finished_at = NULL, cancel_requested = NULL, failures_base = failures, lapses_base = lapses
WHERE id = :id

-- name: set_paused
INSERT INTO {{queues}} (name, paused) VALUES (:name, :paused)
ON CONFLICT (name) DO UPDATE SET paused = excluded.paused

-- name: run_job_now
UPDATE {{jobs}} SET state = {{ready}}, due_at = :now WHERE id = :id
