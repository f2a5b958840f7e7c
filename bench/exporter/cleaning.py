"""The broker's own cleaning of statistics, which a stretch holds as often as it is long, or is not comparable."""

import itertools
import time

import psutil

CLEANING = 120.0
"""Seconds from one to the next, counted from the broker's start (`core_metrics_gc_interval` of RabbitMQ).

Seen: 0.16 s of processor time in one piece with 1,000 queues of 3.10.8 where all else took 0.010 to 0.011 a second, and
2.3 s with 10,000; 0.03 s with 1,000 of 4.3.6.
"""


def until_between(*ages: float) -> float:
    """Seconds until half way between two cleanings; of several brokers, in the middle of the longest time without one.

    Each comes later by what the one before took: of large brokers they drift, and after an hour this says nothing.

    Args:
        ages: seconds since each started.
    """
    coming = sorted(-age % CLEANING for age in ages)
    gaps = [(later - sooner, sooner) for sooner, later in itertools.pairwise([*coming, coming[0] + CLEANING])]
    longest, begins = max(gaps)
    return (begins + longest / 2) % CLEANING


def wait_between(*pids: int) -> None:
    """Wait until then: what begins now and takes a multiple of `CLEANING` holds as many whole ones.

    Raises:
        psutil.NoSuchProcess: a broker is gone.
    """
    time.sleep(until_between(*(time.time() - psutil.Process(pid).create_time() for pid in pids)))
