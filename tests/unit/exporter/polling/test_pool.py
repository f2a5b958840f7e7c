import threading
import time
from queue import SimpleQueue

import exporter.polling.pool as pool_module
from exporter.polling.pool import BASE_THREADS, WorkerPool

DEADLINE = 20


def resting(pool):
    """How many threads there are, once all have nothing to do."""
    until = time.monotonic() + DEADLINE
    while len(pool._idle) < len(pool.threads):
        assert time.monotonic() < until
        time.sleep(0.01)
    return len(pool.threads)


def rested(pool, done, count):
    """How many threads rest after a bad minute, in which so many jobs hung at once."""
    release = threading.Event()
    for _ in range(count):
        pool.submit("hangs", lambda: done.put(release.wait(DEADLINE)))
        pool.grow()
    release.set()
    for _ in range(count):
        done.get(timeout=DEADLINE)
    return resting(pool)


def test_jobs_are_done_in_threads_that_carry_their_names():
    """As many as were handed in; a thread serves more than one."""
    done = SimpleQueue()
    pool = WorkerPool("idle", max_threads=16)
    for number in range(12):
        pool.submit(f"job-{number}", lambda: done.put(threading.current_thread().name))

    assert {f"job-{number}" for number in range(12)} == {done.get(timeout=DEADLINE) for _ in range(12)}
    assert len(pool.threads) <= BASE_THREADS
    pool.stop()


def test_jobs_that_hang_hold_up_no_other():
    """One more thread for what waits, but never more than the bound."""
    release, done = threading.Event(), SimpleQueue()
    pool = WorkerPool("idle", max_threads=6)
    for _ in range(5):
        pool.submit("hangs", lambda: release.wait(DEADLINE))
    pool.submit("goes", lambda: done.put("done"))
    for _ in range(10):
        pool.grow()

    assert done.get(timeout=DEADLINE) == "done"
    assert len(pool.threads) == 6
    release.set()
    pool.stop()


def test_threads_of_a_bad_minute_do_not_stay(monkeypatch):
    """The one that rested last gets the next job, so that all others have nothing to do for long, and end."""
    monkeypatch.setattr(pool_module, "_IDLE_SECONDS", 0.3)
    release, done = threading.Event(), SimpleQueue()
    pool = WorkerPool("idle", max_threads=6)
    for _ in range(6):
        pool.submit("hangs", lambda: done.put(release.wait(DEADLINE)))
        pool.grow()
    max_threads = len(pool.threads)
    release.set()
    for _ in range(6):
        done.get(timeout=DEADLINE)
    while len(pool.threads) > 1:
        pool.submit("quick", lambda: done.put(None))
        done.get(timeout=DEADLINE)
    pool.stop()

    assert max_threads == 6


def test_threads_that_rest_after_a_bad_minute_are_not_all_used_at_once():
    """What comes in one heap is done by as many as are enough: to the broker each is a connection."""
    done, pool = SimpleQueue(), WorkerPool("idle", max_threads=6)
    rest = rested(pool, done, 6)
    under_way, max_threads, lock = 0, 0, threading.Lock()

    def counted():
        nonlocal under_way, max_threads
        with lock:
            under_way += 1
            max_threads = max(max_threads, under_way)
        time.sleep(0.02)
        with lock:
            under_way -= 1
        done.put(None)

    for _ in range(12):
        pool.submit("quick", counted)
    for _ in range(12):
        done.get(timeout=DEADLINE)
    pool.stop()

    assert max_threads == BASE_THREADS < rest


def test_a_thread_that_rests_relieves_those_that_hang():
    """None is started where one has nothing to do."""
    done, pool = SimpleQueue(), WorkerPool("idle", max_threads=6)
    rest = rested(pool, done, 3)
    again = threading.Event()
    for _ in range(BASE_THREADS):
        pool.submit("hangs", lambda: again.wait(DEADLINE))
    pool.submit("goes", lambda: done.put("done"))
    waits = done.empty()
    pool.grow()

    assert done.get(timeout=DEADLINE) == "done"
    assert waits
    assert len(pool.threads) == rest > BASE_THREADS
    again.set()
    pool.stop()


def test_nothing_is_begun_after_stop():
    """What waits is forgotten, and the threads end."""
    done = SimpleQueue()
    pool = WorkerPool("idle", max_threads=2)
    pool.stop()
    pool.submit("late", lambda: done.put("late"))
    pool.grow()

    assert [] == pool.threads
    assert done.empty()
