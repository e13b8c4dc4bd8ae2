-- min_compatible: 3
--
-- Older workers would settle a completion without the jobs that it left.

-- What the latest attempt that said anything said of its progress, as JSON text.
ALTER TABLE {{jobs}} ADD COLUMN progress TEXT;
-- What handlers logged. Readers: job_log, job_log_end, prune_lines.
CREATE TABLE {{log_lines}} (
    job_id BLOB NOT NULL,
    attempt INTEGER NOT NULL,
    number INTEGER NOT NULL,
    at INTEGER NOT NULL,
    message TEXT NOT NULL,
    fields TEXT NOT NULL,
    PRIMARY KEY (job_id, attempt, number)
);
