import threading
import time
from queue import SimpleQueue

import exporter.polling.workers as workers_module
from exporter.polling.workers import QUICK, Workers

DEADLINE = 20


def resting(workers):
    """How many threads there are, once all have nothing to do."""
    until = time.monotonic() + DEADLINE
    while len(workers._resting) < len(workers.threads):
        assert time.monotonic() < until
        time.sleep(0.01)
    return len(workers.threads)


def rested(workers, done, count):
    """How many threads rest after a bad minute, in which so many jobs hung at once."""
    release = threading.Event()
    for _ in range(count):
        workers.submit("hangs", lambda: done.put(release.wait(DEADLINE)))
        workers.relieve()
    release.set()
    for _ in range(count):
        done.get(timeout=DEADLINE)
    return resting(workers)


def test_jobs_are_done_in_threads_that_carry_their_names():
    """As many as were handed in; a thread serves more than one."""
    done = SimpleQueue()
    workers = Workers("idle", most=16)
    for number in range(12):
        workers.submit(f"job-{number}", lambda: done.put(threading.current_thread().name))

    assert {f"job-{number}" for number in range(12)} == {done.get(timeout=DEADLINE) for _ in range(12)}
    assert len(workers.threads) <= QUICK
    workers.stop()


def test_jobs_that_hang_hold_up_no_other():
    """One more thread for what waits, but never more than the bound."""
    release, done = threading.Event(), SimpleQueue()
    workers = Workers("idle", most=6)
    for _ in range(5):
        workers.submit("hangs", lambda: release.wait(DEADLINE))
    workers.submit("goes", lambda: done.put("done"))
    for _ in range(10):
        workers.relieve()

    assert done.get(timeout=DEADLINE) == "done"
    assert len(workers.threads) == 6
    release.set()
    workers.stop()


def test_threads_of_a_bad_minute_do_not_stay(monkeypatch):
    """The one that rested last gets the next job, so that all others have nothing to do for long, and end."""
    monkeypatch.setattr(workers_module, "_IDLE_SECONDS", 0.3)
    release, done = threading.Event(), SimpleQueue()
    workers = Workers("idle", most=6)
    for _ in range(6):
        workers.submit("hangs", lambda: done.put(release.wait(DEADLINE)))
        workers.relieve()
    most = len(workers.threads)
    release.set()
    for _ in range(6):
        done.get(timeout=DEADLINE)
    while len(workers.threads) > 1:
        workers.submit("quick", lambda: done.put(None))
        done.get(timeout=DEADLINE)
    workers.stop()

    assert most == 6


def test_threads_that_rest_after_a_bad_minute_are_not_all_used_at_once():
    """What comes in one heap is done by as many as are enough: to the broker each is a connection."""
    done, workers = SimpleQueue(), Workers("idle", most=6)
    rest = rested(workers, done, 6)
    under_way, most, lock = 0, 0, threading.Lock()

    def counted():
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        time.sleep(0.02)
        with lock:
            under_way -= 1
        done.put(None)

    for _ in range(12):
        workers.submit("quick", counted)
    for _ in range(12):
        done.get(timeout=DEADLINE)
    workers.stop()

    assert most == QUICK < rest


def test_a_thread_that_rests_relieves_those_that_hang():
    """None is started where one has nothing to do."""
    done, workers = SimpleQueue(), Workers("idle", most=6)
    rest = rested(workers, done, 3)
    again = threading.Event()
    for _ in range(QUICK):
        workers.submit("hangs", lambda: again.wait(DEADLINE))
    workers.submit("goes", lambda: done.put("done"))
    waits = done.empty()
    workers.relieve()

    assert done.get(timeout=DEADLINE) == "done"
    assert waits
    assert len(workers.threads) == rest > QUICK
    again.set()
    workers.stop()


def test_nothing_is_begun_after_stop():
    """What waits is forgotten, and the threads end."""
    done = SimpleQueue()
    workers = Workers("idle", most=2)
    workers.stop()
    workers.submit("late", lambda: done.put("late"))
    workers.relieve()

    assert [] == workers.threads
    assert done.empty()
