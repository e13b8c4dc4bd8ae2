-- name: database_settings
-- Differs because every database has settings of its own.
SELECT CASE name WHEN 'server_version' THEN 'version' ELSE name END AS name, setting AS value
FROM pg_catalog.pg_settings
WHERE name IN ('server_version', 'fsync', 'full_page_writes', 'synchronous_commit', 'autovacuum',
    'max_connections', 'default_transaction_read_only')
UNION ALL SELECT 'standby', pg_is_in_recovery()::text
UNION ALL SELECT 'connections', count(*)::text FROM pg_catalog.pg_stat_activity
    WHERE backend_type LIKE 'client %'
UNION ALL SELECT 'sees_all_sessions', pg_has_role('pg_read_all_stats', 'USAGE')::text
UNION ALL SELECT 'session_pid', pg_backend_pid()::text

-- name: database_tables
-- Differs because here a changed row leaves its old version behind, to be cleaned away.
SELECT schemaname || '.' || relname AS name, n_live_tup AS live, n_dead_tup AS dead,
    pg_total_relation_size(relid) AS size, greatest(last_vacuum, last_autovacuum) AS vacuumed_at
FROM pg_catalog.pg_stat_user_tables WHERE schemaname = '{{schema}}'
ORDER BY n_dead_tup DESC, relname LIMIT :limit

-- name: database_sessions
-- Differs because only a server has sessions. Locks are read once; what a session waits for is told
-- without pg_blocking_pids, which would stop the lock table for each of its calls.
WITH locks AS MATERIALIZED (
    SELECT l.pid, l.mode, l.granted, l.relation, l.transactionid,
        CASE WHEN n.nspname = '{{schema}}' AND c.relkind = 'r' THEN c.relname END AS ours
    FROM pg_catalog.pg_locks AS l
    LEFT JOIN pg_catalog.pg_class AS c ON c.oid = l.relation
        AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
    LEFT JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE l.relation IS NOT NULL OR l.transactionid IS NOT NULL
), open AS (
    SELECT pid, coalesce(application_name, '') AS application, coalesce(usename::text, '') AS username,
        coalesce(state, 'not shown to this user') AS state, clock_timestamp() - xact_start AS open_for,
        CASE WHEN state LIKE 'idle in transaction%' THEN clock_timestamp() - state_change END AS idle_for
    FROM pg_catalog.pg_stat_activity
    WHERE datname = current_database() AND backend_type LIKE 'client %'
        AND pid <> pg_backend_pid() AND xact_start <= clock_timestamp() - :longer::interval
    UNION ALL
    SELECT NULL, gid, owner::text, 'prepared', clock_timestamp() - prepared,
        clock_timestamp() - prepared
    FROM pg_catalog.pg_prepared_xacts
    WHERE database = current_database() AND prepared <= clock_timestamp() - :longer::interval
)
SELECT o.pid, o.application, o.username, o.state, o.open_for, o.idle_for,
    coalesce((SELECT string_agg(DISTINCT l.mode || ' on ' || l.ours, ', ') FROM locks AS l
        WHERE l.pid = o.pid AND l.granted AND l.ours IS NOT NULL
            AND l.mode <> 'AccessShareLock'), '') AS holds,
    (SELECT count(DISTINCT w.pid) FROM locks AS w JOIN locks AS h
            ON h.pid = o.pid AND h.granted AND w.pid <> h.pid
            AND (h.transactionid = w.transactionid OR h.relation = w.relation)
        WHERE NOT w.granted) AS blocks
FROM open AS o ORDER BY o.open_for DESC LIMIT :limit
