-- name: joined_file
-- Differs because here alone a transaction is in one file, which has to be the store's.
SELECT file FROM pragma_database_list WHERE name = 'main'

-- name: busy_timeout
-- How many milliseconds the connection waits for another writer.
PRAGMA busy_timeout

-- name: take_write_lock
-- Writes nothing, and takes the lock that writing takes. It stands before all reading: a transaction
-- that has read cannot wait for the lock, and can never have it once another one wrote.
UPDATE {{meta}} SET value = value WHERE name = ''
