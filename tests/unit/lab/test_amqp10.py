from itertools import count

import lab.amqp10
from lab.amqp10 import of_exchange, of_queue, paced


def test_addresses_are_escaped():
    """A slash in a name is no separator."""
    assert ("/queues/a%2Fb%20c", "/exchanges/x%2F/k%25") == (of_queue("a/b c"), of_exchange("x/", "k%"))


def test_a_consumer_settles_at_its_rate_and_never_catches_up(monkeypatch):
    """Two a second, also after ten seconds without a message."""
    clock = count(100.0, 0.1)
    monkeypatch.setattr(lab.amqp10.time, "monotonic", lambda: next(clock))
    take = paced(2.0)

    assert [0] * 100 == [take(0) for _ in range(100)]
    assert 4 <= sum(take(50) for _ in range(20)) <= 5
