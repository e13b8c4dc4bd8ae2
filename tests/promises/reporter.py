"""A worker played by hand: it claims, is stopped past its lease, and reports all the same.

Arguments: the lease in seconds. It writes a JSON object per step to stdout; its log is on stderr.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import timedelta

from tests.promises.promised import given_store, stand_still

from tidemill.core.commands import NoticeStale
from tidemill.shell.heart import introduction
from tidemill.shell.identity import new_id
from tidemill.shell.notices import log_notice
from tidemill.store.exchange import Exchange
from tidemill.store.lease import Register
from tidemill.values.exchange import ClaimRequest, Share
from tidemill.values.ids import WorkerId
from tidemill.values.outcomes import Outcome, Verdict
from tidemill.values.tags import Tag


def say(**fields: object) -> None:
    print(json.dumps(fields, default=str), flush=True)


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    store = given_store()
    worker, names = WorkerId(new_id()), frozenset({"held"})
    lease = timedelta(seconds=float(sys.argv[1]))
    store.perform_sync(Register(info=introduction(("default",), names, 1)(worker), lease=lease))
    request = ClaimRequest(shares=(Share("default", 1),), limit=1, wire_names=names)
    (job,) = store.perform_sync(Exchange(worker=worker, claim=request)).claimed
    say(worker=worker, job=job.id, attempt=job.attempt)
    stand_still()
    outcome = Outcome(
        job_id=job.id,
        attempt=job.attempt,
        verdict=Verdict.SUCCEEDED,
        output=b'"from the dead"',
        tags=frozenset({Tag("by", "the dead")}),
    )
    reply = store.perform_sync(Exchange(worker=worker, outcomes=(outcome,)))
    (reported,) = reply.reported
    log_notice(NoticeStale(worker, reported))
    say(live=reply.live, answer=reported.answer.value)
    store.close()


main()
