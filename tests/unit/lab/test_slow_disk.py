"""Slow syncs: the parts that need no broker."""

import pytest

from ackscope.errors import MissingPart
from lab.slow_disk import slow_disk


def test_without_strace_it_says_how_to_get_it(monkeypatch):
    """In one line."""
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(MissingPart) as error, slow_disk(1, 0.1):
        pass

    assert "strace is missing: apt-get install strace" == str(error.value)
