-- min_compatible: 1

-- One row of jobs is one job, and the only truth about it. Ids are 16 bytes whose order is the order
-- of creation; instants are microseconds since 1970 UTC, durations microseconds, states and verdicts
-- are the codes of sql/codes.py. What is large stands last, so that lists need not read past it.
--
-- With a rowid, by measurement (claim and commit in batches of 100, one connection): 25 to 29 k jobs/s
-- with small payloads either way, 11.5 k/s against 10.2 k/s WITHOUT ROWID with payloads of 2 KB, where
-- the file grows by an eighth more. A tree of short keys beside whole rows wins as payloads grow.
CREATE TABLE {{jobs}} (
    id BLOB NOT NULL PRIMARY KEY,
    wire_name TEXT NOT NULL,
    queue TEXT NOT NULL,
    priority INTEGER NOT NULL,
    state INTEGER NOT NULL,
    held INTEGER,
    due_at INTEGER NOT NULL,
    attempt INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0,
    failures_base INTEGER NOT NULL DEFAULT 0,
    lapses INTEGER NOT NULL DEFAULT 0,
    lapses_base INTEGER NOT NULL DEFAULT 0,
    worker_id BLOB,
    started_at INTEGER,
    finished_at INTEGER,
    cause TEXT,
    cancel_requested TEXT,
    retry TEXT,
    timeout INTEGER,
    not_after INTEGER,
    idempotency_key TEXT,
    -- '' is the job without a tenant: NULLs would each be a scope of their own in the index of keys.
    tenant TEXT NOT NULL DEFAULT '',
    rerun_of BLOB,
    created_at INTEGER NOT NULL,
    digest BLOB NOT NULL,
    trace_context TEXT,
    payload BLOB NOT NULL,
    output BLOB
);

-- A plain job has an entry in its primary key and in one of the next three at a time.
-- Readers: ready_jobs, the claim, in the claim's own order; opening and count_ready.
CREATE INDEX {{jobs}}_ready ON {{jobs}} (queue, priority DESC, due_at, id)
    WHERE state = {{ready}} AND held IS NULL;
-- Readers: opening, next_due, activate_due and count_scheduled.
CREATE INDEX {{jobs}}_scheduled ON {{jobs}} (queue, due_at, id) WHERE state = {{scheduled}};
-- Readers: lapsed_jobs and upkeep, the sweep; running_jobs, a worker's heartbeat; count_running.
CREATE INDEX {{jobs}}_running ON {{jobs}} (worker_id, id) WHERE state = {{running}};
-- Readers: opening, every exchange; cancel_requests.
CREATE INDEX {{jobs}}_cancels ON {{jobs}} (worker_id, id)
    WHERE cancel_requested IS NOT NULL AND state = {{running}};
-- Readers: expired_jobs and upkeep, the sweep.
CREATE INDEX {{jobs}}_expiry ON {{jobs}} (not_after, id)
    WHERE not_after IS NOT NULL AND attempt = 0 AND state IN ({{scheduled}}, {{ready}});
-- Readers: key_holders; and it is what refuses a second active job of one key (clause F3).
CREATE UNIQUE INDEX {{jobs}}_key ON {{jobs}} (tenant, idempotency_key)
    WHERE idempotency_key IS NOT NULL AND state IN ({{non_terminal}});
-- Readers: held_jobs, every_held_job and upkeep, the sweep and a registering worker; count_held.
CREATE INDEX {{jobs}}_held ON {{jobs}} (wire_name, id) WHERE held IS NOT NULL;

-- The lease lives here, so that a heartbeat writes one row however many attempts run.
CREATE TABLE {{workers}} (
    id BLOB NOT NULL PRIMARY KEY,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    version TEXT NOT NULL,
    queues TEXT NOT NULL,
    wire_names TEXT NOT NULL,
    slots INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    lease INTEGER NOT NULL,
    lease_expires_at INTEGER NOT NULL,
    lapsed_at INTEGER,
    -- The row stays, so that the id is never used again.
    deregistered_at INTEGER
) WITHOUT ROWID;

-- How attempts ended that did not succeed, and reports that came too late (stale = 1).
CREATE TABLE {{attempts}} (
    seq INTEGER PRIMARY KEY,
    job_id BLOB NOT NULL,
    attempt INTEGER NOT NULL,
    worker_id BLOB NOT NULL,
    verdict INTEGER NOT NULL,
    stale INTEGER NOT NULL,
    started_at INTEGER,
    ended_at INTEGER NOT NULL,
    holder_worker BLOB,
    holder_attempt INTEGER,
    holder_state INTEGER,
    error_kind TEXT,
    error_message TEXT,
    error_detail TEXT
);
-- Readers: recorded_verdicts, job_attempts, prune_attempts.
CREATE INDEX {{attempts}}_job ON {{attempts}} (job_id, stale, seq);

CREATE TABLE {{tags}} (
    job_id BLOB NOT NULL,
    tag TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (job_id, tag, value)
) WITHOUT ROWID;

-- What operators did, and what they were answered: the same action again is answered from here.
CREATE TABLE {{audit}} (
    seq INTEGER PRIMARY KEY,
    action_id BLOB NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    actor TEXT NOT NULL,
    at INTEGER NOT NULL,
    answer TEXT NOT NULL
);

-- What operators said of queues; a queue without a row is not paused.
CREATE TABLE {{queues}} (
    name TEXT NOT NULL PRIMARY KEY,
    paused INTEGER NOT NULL
) WITHOUT ROWID;

-- The schema's version and min_compatible; the end of the last time when nobody could write, and what
-- the processes know together of the times when somebody could.
CREATE TABLE {{meta}} (
    name TEXT NOT NULL PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;
