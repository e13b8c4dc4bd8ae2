-- min_compatible: 1

-- What follows from a transactional completion and is not done yet: its tags, as JSON text.
ALTER TABLE {{jobs}} ADD COLUMN unsettled TEXT;
-- Readers: unsettled_jobs and upkeep, the sweep.
CREATE INDEX {{jobs}}_unsettled ON {{jobs}} (worker_id, id) WHERE unsettled IS NOT NULL;
