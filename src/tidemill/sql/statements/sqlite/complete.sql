-- name: job_holder
-- Differs because a user's connection may convert what is read by the declared type of its column. The
-- `+` changes no value and has no type, so nothing is converted.
SELECT +id AS id, +state AS state, +worker_id AS worker_id, +attempt AS attempt
FROM {{jobs}} WHERE id = :id
