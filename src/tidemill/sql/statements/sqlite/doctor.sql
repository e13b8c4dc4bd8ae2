-- name: database_settings
-- Differs because every database has settings of its own.
SELECT 'version' AS name, sqlite_version() AS value
UNION ALL SELECT 'journal_mode', journal_mode FROM pragma_journal_mode
UNION ALL SELECT 'page_size', page_size FROM pragma_page_size
UNION ALL SELECT 'freelist_count', freelist_count FROM pragma_freelist_count

-- name: database_tables
-- Differs because there are no rows that wait to be cleaned away.
SELECT NULL AS name, NULL AS live, NULL AS dead, NULL AS size, NULL AS vacuumed_at WHERE 0 AND :limit

-- name: database_sessions
-- Differs because the file knows no sessions: who writes is seen by the locks on it.
SELECT NULL AS pid, NULL AS application, NULL AS username, NULL AS state, NULL AS open_for,
    NULL AS idle_for, NULL AS holds, NULL AS blocks WHERE 0 AND :longer AND :limit
