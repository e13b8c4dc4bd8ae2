-- name: stored_jobs
-- Differs because a user's connection may convert what is read by the declared type of its column. The
-- `+` changes no value and has no type, so nothing is converted.
SELECT +id AS id, +state AS state, +digest AS digest FROM {{jobs}} WHERE id IN (:ids*)

-- name: key_holders
-- Differs because of the same.
SELECT +id AS id, +state AS state, +idempotency_key AS idempotency_key, 0 AS past FROM {{jobs}}
WHERE tenant = :tenant AND idempotency_key IN (:keys*)
  AND idempotency_key IS NOT NULL AND state IN ({{non_terminal}})
