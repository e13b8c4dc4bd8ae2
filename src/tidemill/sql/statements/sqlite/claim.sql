-- name: activate_due
-- Differs because a column holds whatever was put into it. What is no number stands behind all numbers
-- and would never be due: it is made ready too, and the claim finds out what is wrong with it.
UPDATE {{jobs}} SET state = {{ready}} WHERE id IN (
    SELECT id FROM (
        SELECT id FROM {{jobs}}
        WHERE state = {{scheduled}} AND queue = :queue AND due_at <= :now
        ORDER BY due_at, id LIMIT :limit
    )
    UNION ALL
    SELECT id FROM (
        SELECT id FROM {{jobs}}
        WHERE state = {{scheduled}} AND queue = :queue AND due_at >= ''
        ORDER BY due_at, id LIMIT :limit
    )
)
