-- min_compatible: 1

-- What follows from a transactional completion and is not done yet: its tags, as JSON text.
ALTER TABLE {{jobs}} ADD COLUMN IF NOT EXISTS unsettled text COLLATE "C";
-- Readers: unsettled_jobs and upkeep, the sweep.
CREATE INDEX IF NOT EXISTS jobs_unsettled ON {{jobs}} (worker_id, id) WHERE unsettled IS NOT NULL;
