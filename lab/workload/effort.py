"""Random values and processing times of the shop."""

import random
import time

_random = random.SystemRandom()


def pick(low: int, high: int) -> int:
    """Return a random integer from `low` to `high`, both included."""
    return _random.randint(low, high)


def chance(probability: float) -> bool:
    """Return True with this probability."""
    return _random.random() < probability


def take_time(low: float, high: float) -> None:
    """Sleep for a random time from `low` to `high` seconds."""
    time.sleep(_random.uniform(low, high))
