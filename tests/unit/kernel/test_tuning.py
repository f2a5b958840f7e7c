import subprocess
import sys

from ackscope import tuning

GIVE_BACK = """
import mmap
from ackscope.tuning import trim_heap, one_arena

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * mmap.PAGESIZE / 2**20

possible = one_arena()
held = [bytes(4000) for _ in range(20000)]
last = bytes(4000)
del held
before = resident()
trim_heap()
print(possible, before - resident() > 40)
"""
SETTLE = """
import gc
from ackscope.tuning import freeze_gc

freeze_gc()
before = len(gc.get_objects())
kept = [[] for _ in range(1000)]
print(before < 1000, len(gc.get_objects()) - before >= 1000)
"""
TIDY = """
import gc, sys, weakref
from ackscope.tuning import collect_cycles, tune

class Cycle:
    def __init__(self):
        self.me = self

tune()
old = weakref.ref(Cycle())
gc.collect(1)
one = Cycle()
gc.collect(1)
gc.collect(1)
one = weakref.ref(one)
still = one() is not None
collect_cycles()
print(sys.getswitchinterval(), old() is None, still, one() is None)
"""


def run(code):
    """Return the output of a script in its own process, because these settings apply to whole processes."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_what_was_freed_goes_back():
    """80 MB in small blocks lie below one that stays; glibc alone would not return them."""
    assert "True True\n" == run(GIVE_BACK)


def test_what_is_there_is_not_looked_at_again():
    """Only what comes after it."""
    assert "True True\n" == run(SETTLE)


def test_young_cycles_are_found_on_the_way_and_old_ones_when_it_is_tidied():
    """No cycle stays forever."""
    assert "0.001 True True True\n" == run(TIDY)


def test_where_there_is_no_glibc_nothing_is_done(monkeypatch):
    """Other C libraries have neither call."""
    monkeypatch.setattr(tuning.ctypes, "CDLL", lambda _: object())
    tuning.trim_heap()

    assert not tuning.one_arena()
