"""The thread that owns a connection: what it does, in order, and what it leaves undone."""

from concurrent.futures import CancelledError, Future
from threading import Event

import pytest

from tidemill.adapters.connection_thread import ConnectionThread
from tidemill.errors import StoreError

SOON = 30


class Connection:
    closed = False

    def close(self):
        self.closed = True


class Owner:
    """A thread whose connections are counted, and that can be held up."""

    def __init__(self):
        self.opened = []
        self.go_on = Event()
        self.thread = ConnectionThread("tidemill-test", self._connect)

    def _connect(self):
        self.opened.append(Connection())
        return self.opened[-1]

    def hold_up(self):
        begun = Event()

        def wait(_connection):
            begun.set()
            self.go_on.wait()

        held = self.thread.submit(wait)
        assert begun.wait(SOON)
        return held


@pytest.fixture
def owner():
    made = Owner()
    yield made
    made.go_on.set()
    made.thread.stop(SOON)


def test_errands_are_done_in_order_on_one_connection(owner):
    answers = [owner.thread.submit(lambda _c, n=n: (n, len(owner.opened))) for n in range(9)]
    assert [each.result(SOON) for each in answers] == [(n, 1) for n in range(9)]


def test_what_comes_first_is_done_before_what_was_handed_in_earlier(owner):
    done = []
    held = owner.hold_up()
    late = [owner.thread.submit(lambda _c, n=n: done.append(n)) for n in range(3)]
    early = [owner.thread.submit(lambda _c, n=n: done.append(n), first=True) for n in "ab"]
    owner.go_on.set()
    for each in (held, *late, *early):
        each.result(SOON)
    assert done == ["a", "b", 0, 1, 2]


def test_an_errand_cancelled_before_its_turn_is_not_done_and_opens_nothing(owner):
    done = []
    held = owner.hold_up()
    owner.opened.clear()
    errand = owner.thread.submit(lambda _c: done.append("never"))
    assert errand.cancel()
    owner.go_on.set()
    assert held.result(SOON) is None
    owner.thread.submit(lambda _c: done.append("later")).result(SOON)
    assert done == ["later"]
    with pytest.raises(CancelledError):
        errand.result(SOON)


def test_an_errand_that_has_begun_cannot_be_cancelled(owner):
    held = owner.hold_up()
    assert not held.cancel()
    owner.go_on.set()
    assert held.result(SOON) is None


def test_what_comes_after_the_end_is_refused_unless_it_was_given_up(owner):
    owner.hold_up()
    owner.thread._errands.end()
    late, gone = owner.thread.submit(id), owner.thread.submit(id, Future())
    gone.cancel()
    owner.go_on.set()
    with pytest.raises(StoreError, match="closed"):
        late.result(SOON)
    assert gone.cancelled()
    owner.thread.stop(SOON)
    assert [connection.closed for connection in owner.opened] == [True]


def test_an_error_is_the_answer_of_its_errand_alone(owner):
    def fail(_connection):
        raise KeyError

    with pytest.raises(KeyError):
        owner.thread.submit(fail).result(SOON)
    assert owner.thread.submit(lambda _c: 7).result(SOON) == 7
