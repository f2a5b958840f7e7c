import logging
import threading

from exporter.exposition.render_thread import RenderThread
from tests.unit.exporter.made import SetClock

SECONDS = 10


def test_what_wakes_it_while_it_works_is_done_once_after():
    """However many snapshots arrive meanwhile; and a wake before the start is heard."""
    began, go_on, done = threading.Semaphore(0), threading.Semaphore(0), []

    def refresh():
        began.release()
        assert go_on.acquire(timeout=SECONDS)
        done.append(1)

    refresher = RenderThread(refresh, SetClock())
    refresher.wake()
    refresher.start()
    assert began.acquire(timeout=SECONDS)
    for _ in range(5):
        refresher.wake()
    go_on.release()
    assert began.acquire(timeout=SECONDS)
    go_on.release()
    refresher.stop()

    assert [1, 1] == done
    assert not began.acquire(blocking=False)


def test_one_that_fails_is_reported_and_the_next_is_made(caplog):
    """An error in one page does not stop later pages."""
    made, outcomes = threading.Semaphore(0), iter([ZeroDivisionError, None])

    def refresh():
        outcome = next(outcomes)
        made.release()
        if outcome:
            raise outcome

    with caplog.at_level(logging.ERROR):
        refresher = RenderThread(refresh, SetClock())
        refresher.start()
        refresher.wake()
        assert made.acquire(timeout=SECONDS)
        refresher.wake()
        assert made.acquire(timeout=SECONDS)
        refresher.stop()

    assert "ZeroDivisionError" in caplog.text


def test_one_that_never_began_can_be_stopped():
    """As when another part fails to start."""
    RenderThread(lambda: None, SetClock()).stop()


def test_what_changes_between_pages_is_made_after_each_and_once_a_second():
    """A defect in it ends neither."""
    order, ticked = [], threading.Semaphore(0)

    def tick():
        order.append("tick")
        ticked.release()
        raise ZeroDivisionError

    refresher = RenderThread(lambda: order.append("page"), SetClock(), tick)
    refresher.wake()
    refresher.start()
    for _ in range(2):
        assert ticked.acquire(timeout=SECONDS)
    refresher.stop()

    assert ["page", "tick", "tick"] == order[:3]
