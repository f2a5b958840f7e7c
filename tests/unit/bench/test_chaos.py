"""The invariants of the chaos benchmark, each with a violation, and its link."""

import random
import socket
import threading
import time
from contextlib import closing
from itertools import islice

import pytest

from bench.chaos.disturbances import disturbances
from bench.chaos.hour import _order, lines
from bench.chaos.invariants import backward, parsed, too_fresh, uncounted
from lab.network_link import LinkState, NetworkLink

TEXT = """\
# TYPE ackscope_confirms_total counter
ackscope_confirms_total{{cluster="shop",probe="confirm",stream="classic",outcome="acked"}} {acked}
# TYPE ackscope_poll_age_seconds gauge
ackscope_poll_age_seconds{{cluster="shop",family="queues"}} {age}
# TYPE rabbitmq_queue_messages_published_total counter
rabbitmq_queue_messages_published_total{{queue="orders"}} {acked}
"""


def scrape(acked=10, age=1.0, at=100.0):
    """Three samples."""
    return parsed(TEXT.format(acked=acked, age=age), at, 0.01)


def row(intended_at, outcome="acked"):
    """A landed message, settled 10 ms after its time."""
    return {
        "probe": "confirm", "stream": "classic", "outcome": outcome,
        "intended_at": intended_at, "send_delay": 0.0, "confirm": 0.01,
    }  # fmt: skip


def test_a_counter_of_the_exporter_that_decreases_is_found():
    """A counter of the broker may start again with its node."""
    (found,) = backward(scrape(acked=10), scrape(acked=9))

    assert found.startswith("ackscope_confirms_total")
    assert "10 -> 9" in found
    assert [] == backward(scrape(acked=10), scrape(acked=10))


@pytest.mark.parametrize(("age", "found"), [(0.5, 1), (18.0, 1), (19.5, 0), (60.0, 0)])
def test_a_family_that_was_read_after_its_source_was_hidden_is_found(age, found):
    """The source is hidden for 20 s; clocks may differ by 1 s."""
    assert found == len(too_fresh(scrape(age=age, at=100.0), 80.0))


def test_messages_that_landed_and_are_not_counted_are_found():
    """Not those that may still be on their way to the count, and not those of other outcomes."""
    landed = [*(row(80.0 + number) for number in range(12)), row(99.0), row(81.0, "undecided")]

    assert ["confirm.classic.acked: 10 counted, 12 landed"] == uncounted(scrape(acked=10), landed)
    assert [] == uncounted(scrape(acked=12), landed)


def test_every_kind_comes_before_any_comes_again():
    """And no name is there twice."""
    kinds = list(disturbances())

    first = list(islice(_order(kinds, random.Random(1)), len(kinds)))

    assert {each.name for each in kinds} == {each.name for each in first}
    assert len(kinds) == len({each.name for each in kinds})


@pytest.fixture
def echoed():
    """A client of an echo server, through a link."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        link = NetworkLink(server.getsockname()[1])

        def serve():
            connection, _ = server.accept()
            with connection:
                while data := connection.recv(100):
                    connection.sendall(data)

        threading.Thread(target=serve, daemon=True).start()
        with closing(link), socket.create_connection(("127.0.0.1", link.port), timeout=5) as client:
            yield link, client


def test_a_silent_link_carries_nothing_until_it_is_open(echoed):
    """The connection stays."""
    link, client = echoed
    client.sendall(b"one")

    assert b"one" == client.recv(100)

    link.turn(LinkState.SILENT)
    client.sendall(b"two")
    client.settimeout(0.3)

    with pytest.raises(TimeoutError):
        client.recv(100)

    link.turn(LinkState.OPEN)
    client.settimeout(5)

    assert b"two" == client.recv(100)


def test_a_lossy_link_carries_everything_in_order_and_some_of_it_later(echoed, monkeypatch):
    """Each piece is lost twice here: it is sent again after 0.2 s, and once more after 0.2 s."""
    link, client = echoed
    dice = iter([0.0, 0.0, 1.0] + [1.0] * 20)
    monkeypatch.setattr("lab.network_link.random.random", lambda: next(dice))
    link.turn(LinkState.LOSSY)
    began = time.monotonic()
    client.sendall(b"one")

    assert b"one" == client.recv(100)
    assert time.monotonic() - began >= 0.4

    client.sendall(b"two")

    assert b"two" == client.recv(100)


def test_a_cut_link_ends_its_connections(echoed):
    """And refuses new ones."""
    link, client = echoed
    client.sendall(b"one")
    client.recv(100)

    link.turn(LinkState.CUT)

    assert b"" == client.recv(100)
    with socket.create_connection(("127.0.0.1", link.port), timeout=5) as refused:
        assert b"" == refused.recv(100)


def test_the_table_fits_80_columns():
    """With a kind that did not recover, and a violation."""
    kind = {"times": 3, "never": 1, "median": 4.5, "worst": 12.0, "rules": ["node-down"]}
    violation = {"invariant": "no counter goes backwards", "at": 1.0, "during": "node killed", "detail": "x"}
    document = {
        "broker": "4.3.6", "seed": 7, "minutes": 60.0, "disturbances": 3, "kinds": {"polled node frozen": kind},
        "scrapes": 3000, "scrapes_failed": 4, "slowest_scrape": 0.2, "uncounted": [], "left": [],
        "violations_by_invariant": {"no counter goes backwards": 1}, "violations": [violation],
    }  # fmt: skip
    text = "\n".join(lines(document))

    assert "polled node frozen" in text
    assert "during node killed" in text
    assert max(map(len, text.splitlines())) <= 80
