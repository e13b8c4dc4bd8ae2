-- name: clock
SELECT {{now}} AS now

-- name: versions
SELECT name, value FROM {{meta}} WHERE name IN ('version', 'min_compatible')

-- name: set_meta
INSERT INTO {{meta}} (name, value) VALUES (:name, :value)
ON CONFLICT (name) DO UPDATE SET value = excluded.value

-- name: unwritable_until
SELECT value FROM {{meta}} WHERE name = 'unwritable_until'
