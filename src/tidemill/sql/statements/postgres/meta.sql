-- name: find_meta
-- Differs because every database lists its tables in a place of its own.
SELECT 1 AS found FROM pg_catalog.pg_tables WHERE schemaname = '{{schema}}' AND tablename = 'meta'

-- name: lock_schema
-- Differs because beginning to write takes no lock: one migrator at a time holds this one.
SELECT pg_advisory_xact_lock(hashtextextended('tidemill.{{schema}}', 0)) AS locked

-- name: unwritable_until
-- Differs because nobody can keep everybody from writing: no lapse ever waits for that.
SELECT NULL::timestamptz AS value WHERE false

-- name: notify
SELECT pg_notify(:channel::text, '')
