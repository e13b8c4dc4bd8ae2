-- name: find_meta
-- Differs because every database lists its tables in a place of its own.
SELECT 1 AS found FROM sqlite_master WHERE type = 'table' AND name = '{{meta}}'

-- name: shared_looks
-- Both are written together first, and kept. Here alone one writer blocks all others.
SELECT name, value FROM {{meta}} WHERE name IN ('looked_at', 'writable_since')

-- name: noted_wait
-- How long the wait was that the note of an unwritable time is about.
SELECT value FROM {{meta}} WHERE name = 'unwritable_for'

-- name: data_version
-- Rises when another connection, of any process, has committed.
PRAGMA data_version

-- name: lock_schema
-- Differs because the write lock is held already.
SELECT 1 AS locked
