"""A request to end the demo is never lost."""

import signal

import pytest

from lab.demo.ending import End

pytestmark = pytest.mark.usefixtures("restored_signals")


class _Hit:
    """An object in whose finalizer the signal arrives."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_signal_that_hits_a_finalizer_is_seen_at_the_next_look() -> None:
    """Python drops any exception raised in a finalizer."""
    end = End()
    end.listen()
    end.check()
    _Hit()

    with pytest.raises(KeyboardInterrupt):
        end.check()


def test_the_second_signal_leaves_the_end_alone() -> None:
    """Otherwise half of the demo would stay."""
    end = End()
    end.listen()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGTERM)
    signal.raise_signal(signal.SIGINT)
    signal.raise_signal(signal.SIGTERM)
