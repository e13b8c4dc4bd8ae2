-- name: bound_lock_wait
-- Differs because here a lock may be waited for without end. In the user's transaction, whose own
-- bound stays where it is the tighter one; `bounded` is NULL then.
WITH before AS MATERIALIZED (SELECT current_setting('lock_timeout') AS setting)
SELECT setting, CASE WHEN setting = '0' OR setting::interval > (:bound::text)::interval
    THEN set_config('lock_timeout', :bound::text, true) END AS bounded
FROM before

-- name: restore_lock_wait
-- The user's own bound again, until the end of the user's transaction.
SELECT set_config('lock_timeout', :setting::text, true) AS setting
