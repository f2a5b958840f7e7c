"""How varied and how slow the shop's work is."""

import random
import time

_random = random.SystemRandom()


def pick(low: int, high: int) -> int:
    """A whole number from `low` to `high`, both included."""
    return _random.randint(low, high)


def chance(probability: float) -> bool:
    """True as often as `probability` says."""
    return _random.random() < probability


def take_time(low: float, high: float) -> None:
    """Work for `low` to `high` seconds."""
    time.sleep(_random.uniform(low, high))
