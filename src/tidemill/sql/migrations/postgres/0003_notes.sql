-- min_compatible: 3
--
-- Older workers would settle a completion without the jobs that it left.

-- What the latest attempt that said anything said of its progress, as JSON text.
ALTER TABLE {{jobs}} ADD COLUMN IF NOT EXISTS progress text COLLATE "C";
-- What handlers logged. Readers: job_log, job_log_end, prune_lines.
CREATE TABLE IF NOT EXISTS {{log_lines}} (
    job_id uuid NOT NULL,
    attempt bigint NOT NULL,
    number bigint NOT NULL,
    at timestamptz NOT NULL,
    message text COLLATE "C" NOT NULL,
    fields text COLLATE "C" NOT NULL,
    PRIMARY KEY (job_id, attempt, number)
);
