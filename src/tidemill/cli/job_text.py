"""Jobs as text: the list as a table, one job as a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.cli.job_lines import progress_text, show_end_of_log
from tidemill.cli.output import instant, pretty, print_table, printable, short_instant
from tidemill.values.jobs import AttemptRecord, Holder, JobDetails, JobRecord
from tidemill.values.states import JobState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

_STYLES = {
    JobState.SCHEDULED: "blue",
    JobState.READY: "cyan",
    JobState.AWAITING: "blue",
    JobState.RUNNING: "yellow",
    JobState.SUCCEEDED: "green",
    JobState.CANCELLED: "magenta",
    JobState.DEAD: "red",
    JobState.QUARANTINED: "red",
}
_WIDE = 140
_INDENT = "  "


def show_list(out: Console, jobs: Iterable[JobRecord]) -> None:
    """Print a table of jobs; a narrow terminal gets what tells one job from another."""
    print_table(out, _wide(jobs) if out.width >= _WIDE else _narrow(jobs))


def _wide(jobs: Iterable[JobRecord]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("ID", no_wrap=True)
    table.add_column("STATE", no_wrap=True)
    table.add_column("ATTEMPT", justify="right", no_wrap=True)
    table.add_column("QUEUE", overflow="fold")
    table.add_column("WIRE NAME", overflow="fold")
    table.add_column("DUE", no_wrap=True)
    table.add_column("FINISHED", no_wrap=True)
    for job in jobs:
        cells = [Text(str(job.id)), _listed_state(job), Text(str(job.attempt))]
        cells += [Text(printable(job.queue)), Text(printable(job.wire_name))]
        table.add_row(*cells, Text(instant(job.due_at)), Text(instant(job.finished_at)))
    return table


def _narrow(jobs: Iterable[JobRecord]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("ID", no_wrap=True)
    table.add_column("STATE", no_wrap=True)
    table.add_column("WHEN (UTC)", no_wrap=True)
    table.add_column("WIRE NAME", overflow="fold")
    for job in jobs:
        when = Text(short_instant(_when(job)))
        name = Text(printable(job.wire_name))
        table.add_row(Text(str(job.id)), _listed_state(job), when, name)
    return table


def _when(job: JobRecord) -> datetime:
    """The instant that says most about a job in its state."""
    if job.state.terminal:
        return job.finished_at or job.due_at
    if job.state is JobState.RUNNING:
        return job.started_at or job.due_at
    return job.due_at


def _listed_state(job: JobRecord) -> Text:
    """The state, with a mark where the rest of the line may be made up."""
    state = state_text(job.state)
    return state.append(", unreadable", style="red") if job.unreadable else state


def state_text(state: JobState) -> Text:
    from rich.text import Text

    return Text(state.value, style=_STYLES[state])


def show_job(
    out: Console, job: JobDetails, *, traceback: bool, now: datetime, whole_log: bool = True
) -> None:
    """Print everything known about one job at this instant, and of its log the end."""
    from rich.text import Text

    out.print(Text(f"Job {job.record.id}", style="bold"), soft_wrap=True)
    _fields(out, list(_facts(job, now)))
    _section(out, "Payload", pretty(job.payload))
    if job.output is not None:
        _section(out, "Output", pretty(job.output))
    ended = [each for each in job.attempts if not each.stale]
    if ended:
        _section(out, "Attempts that did not succeed", "")
        for each in ended:
            _lines(out, _attempt(each, traceback=traceback))
    stale = [each for each in job.attempts if each.stale]
    if stale:
        _section(out, "Stale reports, rejected", "")
        for each in stale:
            _lines(out, _stale(each))
    if job.log:
        _section(out, "Log" if whole_log else f"The last {len(job.log)} lines of the log", "")
        show_end_of_log(out, job.log, _INDENT)
        if not whole_log:
            _lines(out, [f"The whole log: tidemill jobs log {job.record.id}"])


def _facts(job: JobDetails, now: datetime) -> Iterator[tuple[str, str]]:
    it = job.record
    yield "state", it.state.value + (f" ({it.cause})" if it.cause else "")
    if it.unreadable:
        yield "unreadable", f"{', '.join(it.unreadable)}: what stands here for them is made up"
    if it.held is not None:
        yield "held", it.held.value
    if it.cancel_requested is not None:
        yield "cancelling", f"asked for by {it.cancel_requested}"
    yield "wire name", it.wire_name
    yield "queue", f"{it.queue}, priority {it.priority}"
    most = it.retry.max_attempts
    yield (
        "attempts",
        (
            f"{it.attempt} started, {it.failures} failed, {it.lapses} lapsed; "
            f"at most {most} attempt{'' if most == 1 else 's'}"
        ),
    )
    if it.worker is not None:
        yield "worker", str(it.worker)
    if it.progress is not None:
        running = it.state is JobState.RUNNING
        yield "progress", progress_text(it.progress, now if running else None)
    yield "created", instant(it.created_at)
    yield "due", instant(it.due_at)
    yield "started", instant(it.started_at)
    yield "finished", instant(it.finished_at)
    if it.not_after is not None:
        yield "expires", instant(it.not_after)
    if it.timeout is not None:
        yield "timeout", f"{it.timeout.total_seconds():g} s"
    if it.idempotency_key is not None:
        yield "key", it.idempotency_key
    if it.tenant is not None:
        yield "tenant", it.tenant
    if it.rerun_of is not None:
        yield "rerun of", str(it.rerun_of)
    if job.tags:
        yield "tags", ", ".join(_tag(*tag) for tag in sorted(job.tags))


def _tag(key: str, value: str) -> str:
    return f"{key}={value}" if value else key


def _fields(out: Console, facts: list[tuple[str, str]]) -> None:
    from rich.text import Text

    width = max(len(name) for name, _ in facts)
    for name, value in facts:
        line = Text(f"{_INDENT}{name:<{width}}  ", style="dim")
        out.print(line.append(printable(value), style="not dim"), soft_wrap=True)


def _section(out: Console, title: str, body: str) -> None:
    from rich.text import Text

    out.print()
    out.print(Text(title, style="bold"), soft_wrap=True)
    if body:
        _lines(out, body.splitlines())


def _lines(out: Console, lines: Iterable[str]) -> None:
    from rich.text import Text

    for line in lines:
        out.print(Text(_INDENT + line), soft_wrap=True)


def _attempt(one: AttemptRecord, *, traceback: bool) -> Iterator[str]:
    when = f"{instant(one.started_at)} to {instant(one.ended_at)}"
    yield f"attempt {one.attempt} {one.verdict.value}, {when}"
    yield f"   worker {one.worker}"
    if one.unreadable:
        yield f"   unreadable: {', '.join(one.unreadable)}"
    if one.error is None:
        return
    for line in printable(f"{one.error.kind}: {one.error.message}").splitlines():
        yield f"   {line}"
    if traceback:
        for line in printable(one.error.detail).splitlines():
            yield f"   | {line}"


def _stale(one: AttemptRecord) -> Iterator[str]:
    yield f"{instant(one.ended_at)}, wanted to record: {one.verdict.value}"
    yield f"   reported by  worker {one.worker}, attempt {one.attempt}"
    yield f"   held by      {_holder(one.holder)}"


def _holder(holder: Holder | None) -> str:
    if holder is None:
        return "nobody: the job was gone"
    return f"worker {holder.worker or '-'}, attempt {holder.attempt}, {holder.state.value}"
