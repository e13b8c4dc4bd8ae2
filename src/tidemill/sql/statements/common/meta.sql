-- name: clock
SELECT {{now}} AS now

-- name: versions
SELECT name, value FROM {{meta}} WHERE name IN ('version', 'min_compatible')

-- name: set_meta
INSERT INTO {{meta}} (name, value) VALUES (:name, :value)
ON CONFLICT (name) DO UPDATE SET value = excluded.value

-- name: unwritable_until
SELECT value FROM {{meta}} WHERE name = 'unwritable_until'

-- name: begin_part
SAVEPOINT tidemill_part

-- name: keep_part
RELEASE SAVEPOINT tidemill_part

-- name: undo_part
ROLLBACK TO SAVEPOINT tidemill_part

-- name: shorten_waits
-- Who writes has the one lock that there is.
SELECT '' AS before WHERE :wait <> ''

-- name: restore_waits
SELECT :before AS now
