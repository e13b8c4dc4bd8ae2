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

-- name: shorten_waits
-- Differs because a lock may have to be waited for. Undoing the part restores what was set.
SELECT current_setting('lock_timeout') AS before, set_config('lock_timeout', :wait::text, true) AS now

-- name: restore_waits
-- Differs because of the same.
SELECT set_config('lock_timeout', :before::text, true) AS now
