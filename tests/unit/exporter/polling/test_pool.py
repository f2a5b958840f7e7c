import threading
import time
from queue import SimpleQueue

import exporter.polling.pool as pool_module
from exporter.polling.pool import BASE_THREADS, WorkerPool

DEADLINE = 20


def idle_threads(pool):
    """Number of threads once all of them are idle."""
    until = time.monotonic() + DEADLINE
    while len(pool._idle) < len(pool.threads):
        assert time.monotonic() < until
        time.sleep(0.01)
    return len(pool.threads)


def idle_after_hangs(pool, done, count):
    """Number of idle threads after this many jobs hung at the same time."""
    release = threading.Event()
    for _ in range(count):
        pool.submit("hangs", lambda: done.put(release.wait(DEADLINE)))
        pool.grow()
    release.set()
    for _ in range(count):
        done.get(timeout=DEADLINE)
    return idle_threads(pool)


def test_jobs_run_in_threads_with_their_names():
    """All of them; a thread runs more than one."""
    done = SimpleQueue()
    pool = WorkerPool("idle", max_threads=16)
    for number in range(12):
        pool.submit(f"job-{number}", lambda: done.put(threading.current_thread().name))

    assert {f"job-{number}" for number in range(12)} == {done.get(timeout=DEADLINE) for _ in range(12)}
    assert len(pool.threads) <= BASE_THREADS
    pool.stop()


def test_jobs_that_hang_block_no_other():
    """One more thread per waiting job, up to the maximum."""
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


def test_extra_threads_end_when_idle(monkeypatch):
    """The most recently idle thread gets the next job, so the others stay idle until they end."""
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


def test_extra_idle_threads_are_not_all_used_at_once():
    """A burst of jobs uses the base number of threads: each is a connection to the broker."""
    done, pool = SimpleQueue(), WorkerPool("idle", max_threads=6)
    rest = idle_after_hangs(pool, done, 6)
    in_flight, max_threads, lock = 0, 0, threading.Lock()

    def counted():
        nonlocal in_flight, max_threads
        with lock:
            in_flight += 1
            max_threads = max(max_threads, in_flight)
        time.sleep(0.02)
        with lock:
            in_flight -= 1
        done.put(None)

    for _ in range(12):
        pool.submit("quick", counted)
    for _ in range(12):
        done.get(timeout=DEADLINE)
    pool.stop()

    assert max_threads == BASE_THREADS < rest


def test_growing_uses_an_idle_thread_first():
    """No thread is started while one is idle."""
    done, pool = SimpleQueue(), WorkerPool("idle", max_threads=6)
    rest = idle_after_hangs(pool, done, 3)
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


def test_nothing_starts_after_stop():
    """Waiting jobs are discarded, and the threads end."""
    done = SimpleQueue()
    pool = WorkerPool("idle", max_threads=2)
    pool.stop()
    pool.submit("late", lambda: done.put("late"))
    pool.grow()

    assert [] == pool.threads
    assert done.empty()
