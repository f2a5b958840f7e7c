"""The schedule of a stream's background maintenance."""

from itertools import pairwise
from pathlib import Path

import pytest

from ackscope.clock import Instant
from pipeline import maintenance
from pipeline.stop import Stop

LOOK = 60


class Hand:
    """A clock that is moved by hand."""

    def __init__(self):
        self.seconds = 0.0

    def now(self):
        """The moment that it was moved to."""
        return Instant(wall=1_700_000_000 + self.seconds, mono=self.seconds)


class Rolled:
    """Rollups of one cluster; nothing in them."""

    def clusters(self):
        """One."""
        return ["shop"]


def lived(monkeypatch, tmp_path: Path, until: float, each: float, every: float | None = None) -> dict[str, list[float]]:
    """Return when analyses and shift searches began, in seconds; a search takes `each`."""
    clock, began = Hand(), {"all": [], "shifts": []}

    def detect(*_):
        began["shifts"].append(clock.seconds)
        clock.seconds += each

    monkeypatch.setattr(maintenance.downsample, "refresh", lambda *_, **__: None)
    monkeypatch.setattr(maintenance, "refresh", lambda *_: began["all"].append(clock.seconds))
    monkeypatch.setattr(maintenance, "shifts", detect)
    monkeypatch.setattr(maintenance, "VACUUM_SECONDS", 1e9)
    worker = maintenance.Maintenance(None, tmp_path, Rolled(), Stop(), clock, every)
    worker._vacuumed = clock.now()
    while clock.seconds < until:
        clock.seconds += LOOK
        worker._work()
    return began


@pytest.mark.parametrize(("each", "apart"), [(3.0, 300.0), (60.0, 1200.0)])
def test_shifts_are_looked_for_between_the_analyses(monkeypatch, tmp_path, each, apart):
    """The search runs every five minutes, or less often if one search takes more than 1/20 of that."""
    began = lived(monkeypatch, tmp_path, 4 * 3600, each)
    late = [at for at in began["shifts"] if at > 3600]
    gaps = [later - earlier for earlier, later in pairwise(late)]

    assert 300 <= began["all"][0] <= 300 + LOOK
    assert min(gaps) >= apart
    assert sorted(gaps)[len(gaps) // 2] <= apart + each + 2 * LOOK


def test_analyses_can_be_more_frequent(monkeypatch, tmp_path):
    """The first one comes after the same time as each later one."""
    began = lived(monkeypatch, tmp_path, 1800, 1.0, every=120.0)["all"]

    assert 120 <= began[0] <= 120 + LOOK
    assert {120} == {later - earlier for earlier, later in pairwise(began)}
