"""The heart: a thread and a connection of its own, in which the pulse beats (clause C9).

Handlers that block the event loop, a pool without a free connection, a slow claim: none of them
may cost the lease. Only a pump that has not turned for very long does.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta
from importlib.metadata import version
from queue import Empty, SimpleQueue
from threading import Thread

from tidemill.core.events import Event
from tidemill.core.pulse import (
    BeatAnswered,
    CallFailed,
    Deregistered,
    DoBeat,
    DoDeregister,
    DoRegister,
    Doubted,
    NoticeAnswered,
    NoticeLeaseLost,
    NoticeNoAnswer,
    NoticeRegistered,
    NoticeStalled,
    Pulse,
    PulseCommand,
    PulseEvent,
    PulseOptions,
    PulseStopped,
    RegisterAnswered,
    StopAsked,
    Tell,
    TickAt,
    Ticked,
)
from tidemill.errors import SchemaError, StoreError
from tidemill.shell.identity import new_id
from tidemill.shell.monotonic import Monotonic
from tidemill.shell.notices import log_pulse_notice, logger
from tidemill.store.contract import Store, SyncChannel
from tidemill.store.lease import Beat, Deregister, Register
from tidemill.values.ids import WorkerId
from tidemill.values.workers import WorkerInfo

Asked = Callable[[float], PulseEvent]


class Heart:
    """Runs the pulse on its own thread."""

    def __init__(
        self,
        store: Store,
        options: PulseOptions,
        introduce: Callable[[WorkerId], WorkerInfo],
        clock: Monotonic,
    ) -> None:
        """Take what is beaten for; `introduce` describes this process under a fresh id."""
        self._store = store
        self._lease = timedelta(seconds=options.lease)
        self._pulse = Pulse(options)
        self._introduce = introduce
        self._clock = clock
        self._asked: SimpleQueue[Asked] = SimpleQueue()
        self._tell: Callable[[Event], None] = _nobody
        self._ping: Callable[[], None] = _nothing
        self._tick_at = clock()
        self._turned_at = clock()
        self._ended = False
        self._thread: Thread | None = None
        self._channel: SyncChannel | None = None
        self._resources = ExitStack()

    def start(
        self,
        tell: Callable[[Event], None],
        ping: Callable[[], None],
        on_end: Callable[[BaseException | None], object],
    ) -> None:
        """Beat from now on.

        Args:
            tell: hands an event to the node, from this thread.
            ping: has the loop call `turned`, from this thread.
            on_end: called from the heart's thread when it ends; with the error if it died.
        """
        self._tell, self._ping = tell, ping
        self._turned_at = self._clock()
        self._thread = Thread(target=self._live, args=(on_end,), name="tidemill-heart", daemon=True)
        self._thread.start()

    def turned(self) -> None:
        """The loop has turned: the pump is alive."""
        self._turned_at = self._clock()

    def doubt(self, worker: WorkerId, why: str) -> None:
        """Have this worker's lease given up and a fresh worker registered. From any thread."""
        self._asked.put(lambda at: Doubted(at, worker, why))

    def stop(self) -> None:
        """Deregister and end. From any thread."""
        self._asked.put(StopAsked)

    def join(self) -> None:
        """Wait for the thread to be gone; it is about to be once it has called `on_end`."""
        if self._thread is not None:
            self._thread.join()

    def _live(self, on_end: Callable[[BaseException | None], object]) -> None:
        try:
            while not self._ended:
                self._beat_once()
            self._drop_channel()
        except SchemaError as error:  # asking again will not help: this version may not work here
            on_end(error)
        except BaseException as error:  # noqa: BLE001 - a dead heart must end the worker loudly
            logger.critical("The heart of this worker died.", exc_info=True)
            on_end(error)
        else:
            on_end(None)

    def _beat_once(self) -> None:
        event = self._next_event()
        pending = [event]
        while pending:
            for command in self._pulse.step(pending.pop(0)):
                answer = self._obey(command)
                if answer is not None:
                    pending.append(answer)

    def _next_event(self) -> PulseEvent:
        wait = max(self._tick_at - self._clock(), 0.0)
        try:
            asked = self._asked.get(timeout=wait) if wait else self._asked.get_nowait()
        except Empty:
            turned_at = self._turned_at
            self._ping()
            return Ticked(self._clock(), turned_at)
        return asked(self._clock())

    def _obey(self, command: PulseCommand) -> PulseEvent | None:
        match command:
            case Tell(event):
                self._tell(event)
            case TickAt(at):
                self._tick_at = at
            case DoRegister():
                return self._attempted(self._register)
            case DoBeat(worker):
                return self._attempted(lambda channel: self._beat(channel, worker))
            case DoDeregister(worker):
                return self._attempted(lambda channel: self._deregister(channel, worker))
            case PulseStopped():
                self._ended = True
            case (
                NoticeRegistered()
                | NoticeLeaseLost()
                | NoticeStalled()
                | NoticeNoAnswer()
                | NoticeAnswered()
            ):
                log_pulse_notice(command)
        return None

    def _attempted(self, call: Callable[[SyncChannel], PulseEvent]) -> PulseEvent:
        try:
            if self._channel is None:
                self._channel = self._resources.enter_context(self._store.dedicated())
            return call(self._channel)
        except SchemaError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the beat had no answer
            self._drop_channel()
            return CallFailed(self._clock(), _cause_of(error))

    def _drop_channel(self) -> None:
        """Use another connection for the next call: one that failed may never heal by itself."""
        self._channel = None
        try:
            self._resources.close()
        except Exception:  # noqa: BLE001 - it is not used any more, whatever closing it says
            logger.debug("Closing the connection of the heart failed.", exc_info=True)

    def _register(self, channel: SyncChannel) -> PulseEvent:
        sent_at = self._clock()
        info = self._introduce(WorkerId(new_id()))
        reply = channel.perform(Register(info=info, lease=self._lease))
        return RegisterAnswered(self._clock(), sent_at, reply.worker)

    def _beat(self, channel: SyncChannel, worker: WorkerId) -> PulseEvent:
        sent_at = self._clock()
        reply = channel.perform(Beat(worker=worker, lease=self._lease))
        return BeatAnswered(self._clock(), sent_at, reply)

    def _deregister(self, channel: SyncChannel, worker: WorkerId) -> PulseEvent:
        channel.perform(Deregister(worker))
        return Deregistered(self._clock())


def introduction(
    queues: tuple[str, ...], wire_names: frozenset[str] | None, slots: int
) -> Callable[[WorkerId], WorkerInfo]:
    """Describes this process under any id."""
    host, pid, own_version = platform.node(), os.getpid(), version("tidemill")

    def introduce(worker: WorkerId) -> WorkerInfo:
        return WorkerInfo(
            id=worker,
            host=host,
            pid=pid,
            version=own_version,
            queues=queues,
            wire_names=wire_names,
            slots=slots,
        )

    return introduce


def _cause_of(error: Exception) -> str:
    """The one error that is behind the others, as it is told."""
    behind: BaseException = error
    while isinstance(behind.__cause__, StoreError):
        behind = behind.__cause__
    told = str(behind)
    return told if isinstance(behind, StoreError) and told else f"{type(behind).__name__}: {told}"


def _nobody(_event: Event) -> None:
    message = "the heart was not started"
    raise AssertionError(message)


def _nothing() -> None:
    message = "the heart was not started"
    raise AssertionError(message)
