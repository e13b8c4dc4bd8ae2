-- min_compatible: 1

CREATE SCHEMA IF NOT EXISTS "{{schema}}";

-- One row of jobs is one job, and the only truth about it. States and verdicts are the codes of
-- sql/codes.py. Text is compared byte by byte, so that order and equality are the same in every
-- database, whatever its locale. What is large stands last, so that lists need not read past it.
--
-- A job has three versions in its life: ready, running, succeeded. Half of each page is kept free for
-- them: that costs disk for the jobs that wait, and saves the server a quarter of its work at batches
-- of 500, since the versions of a row stay on one page.
CREATE TABLE {{jobs}} (
    id uuid NOT NULL PRIMARY KEY,
    wire_name text COLLATE "C" NOT NULL,
    queue text COLLATE "C" NOT NULL,
    priority smallint NOT NULL,
    state smallint NOT NULL,
    held smallint,
    due_at timestamptz NOT NULL,
    attempt bigint NOT NULL DEFAULT 0,
    failures bigint NOT NULL DEFAULT 0,
    failures_base bigint NOT NULL DEFAULT 0,
    lapses bigint NOT NULL DEFAULT 0,
    lapses_base bigint NOT NULL DEFAULT 0,
    worker_id uuid,
    started_at timestamptz,
    finished_at timestamptz,
    cause text COLLATE "C",
    cancel_requested text COLLATE "C",
    retry text COLLATE "C",
    timeout interval,
    not_after timestamptz,
    idempotency_key text COLLATE "C",
    -- '' is the job without a tenant: NULLs would each be a scope of their own in the index of keys.
    tenant text COLLATE "C" NOT NULL DEFAULT '',
    rerun_of uuid,
    created_at timestamptz NOT NULL,
    digest bytea NOT NULL,
    trace_context text COLLATE "C",
    payload bytea NOT NULL,
    output bytea
) WITH (fillfactor = 50);

-- A plain job has an entry in its primary key and in one of the next three at a time.
-- Readers: ready_jobs, the claim, in the claim's own order; opening and count_ready.
CREATE INDEX jobs_ready ON {{jobs}} (queue, priority DESC, due_at, id)
    WHERE state = {{ready}} AND held IS NULL;
-- Readers: opening, next_due, activate_due and count_scheduled.
CREATE INDEX jobs_scheduled ON {{jobs}} (queue, due_at, id) WHERE state = {{scheduled}};
-- Readers: lapsed_jobs and upkeep, the sweep; running_jobs, a worker's heartbeat; count_running.
CREATE INDEX jobs_running ON {{jobs}} (worker_id, id) WHERE state = {{running}};
-- Readers: opening, every exchange; cancel_requests.
CREATE INDEX jobs_cancels ON {{jobs}} (worker_id, id)
    WHERE cancel_requested IS NOT NULL AND state = {{running}};
-- Readers: expired_jobs and upkeep, the sweep.
CREATE INDEX jobs_expiry ON {{jobs}} (not_after, id)
    WHERE not_after IS NOT NULL AND attempt = 0 AND state IN ({{scheduled}}, {{ready}});
-- Readers: key_holders; and it is what refuses a second active job of one key (clause F3).
CREATE UNIQUE INDEX jobs_key ON {{jobs}} (tenant, idempotency_key)
    WHERE idempotency_key IS NOT NULL AND state IN ({{non_terminal}});
-- Readers: held_jobs, every_held_job and upkeep, the sweep and a registering worker; count_held.
CREATE INDEX jobs_held ON {{jobs}} (wire_name, id) WHERE held IS NOT NULL;

-- The lease lives here, so that a heartbeat writes one row however many attempts run. No index but
-- the key, and free pages: every heartbeat is an update in place.
CREATE TABLE {{workers}} (
    id uuid NOT NULL PRIMARY KEY,
    host text COLLATE "C" NOT NULL,
    pid bigint NOT NULL,
    version text COLLATE "C" NOT NULL,
    queues text COLLATE "C" NOT NULL,
    wire_names text COLLATE "C" NOT NULL,
    slots bigint NOT NULL,
    started_at timestamptz NOT NULL,
    lease interval NOT NULL,
    lease_expires_at timestamptz NOT NULL,
    lapsed_at timestamptz,
    -- The row stays, so that the id is never used again.
    deregistered_at timestamptz
) WITH (fillfactor = 50);

-- How attempts ended that did not succeed, and reports that came too late (stale).
CREATE TABLE {{attempts}} (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id uuid NOT NULL,
    attempt bigint NOT NULL,
    worker_id uuid NOT NULL,
    verdict smallint NOT NULL,
    stale boolean NOT NULL,
    started_at timestamptz,
    ended_at timestamptz NOT NULL,
    holder_worker uuid,
    holder_attempt bigint,
    holder_state smallint,
    error_kind text COLLATE "C",
    error_message text COLLATE "C",
    error_detail text COLLATE "C"
);
-- Readers: recorded_verdict, job_attempts, prune_attempts.
CREATE INDEX attempts_job ON {{attempts}} (job_id, stale, seq);

CREATE TABLE {{tags}} (
    job_id uuid NOT NULL,
    tag text COLLATE "C" NOT NULL,
    value text COLLATE "C" NOT NULL,
    PRIMARY KEY (job_id, tag, value)
);

-- What operators did, and what they were answered: the same action again is answered from here.
CREATE TABLE {{audit}} (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    action_id uuid NOT NULL UNIQUE,
    kind text COLLATE "C" NOT NULL,
    actor text COLLATE "C" NOT NULL,
    at timestamptz NOT NULL,
    answer text COLLATE "C" NOT NULL
);

-- What operators said of queues; a queue without a row is not paused.
CREATE TABLE {{queues}} (
    name text COLLATE "C" NOT NULL PRIMARY KEY,
    paused boolean NOT NULL
);

-- The schema's version and min_compatible.
CREATE TABLE {{meta}} (
    name text COLLATE "C" NOT NULL PRIMARY KEY,
    value bigint NOT NULL
);
