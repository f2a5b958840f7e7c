"""The invariants of the chaos benchmark, each with a violation, and its link."""

import random
import socket
import threading
import time
from contextlib import closing
from datetime import UTC, datetime
from itertools import islice
from types import SimpleNamespace

import pytest

from ackscope.errors import MissingPart
from bench.chaos import jumping_clock
from bench.chaos.disturbances import disturbances
from bench.chaos.hour import _order, lines
from bench.chaos.invariants import (
    Watch,
    backward,
    landed_messages,
    parsed,
    too_fresh,
    uncounted,
    unlanded,
    wrong_ages,
    wrong_beginnings,
    wrong_latencies,
)
from bench.chaos.jumping_clock import JumpingClock
from lab.network_link import LinkState, NetworkLink

TEXT = """\
# TYPE ackscope_confirms_total counter
ackscope_confirms_total{{cluster="shop",probe="confirm",stream="classic",outcome="acked"}} {acked}
# TYPE ackscope_poll_age_seconds gauge
ackscope_poll_age_seconds{{cluster="shop",family="queues"}} {age}
# TYPE ackscope_confirm_latency_seconds histogram
ackscope_confirm_latency_seconds_bucket{{stream="classic",le="+Inf"}} {timed}
ackscope_confirm_latency_seconds_count{{stream="classic"}} {timed}
ackscope_confirm_latency_seconds_sum{{stream="classic"}} {seconds}
# TYPE ackscope_landing_dropped_rows_total counter
ackscope_landing_dropped_rows_total{{table="probe_messages",reason="spool"}} {dropped}
# TYPE rabbitmq_queue_messages_published_total counter
rabbitmq_queue_messages_published_total{{queue="orders"}} {acked}
"""


def scrape(acked=10, age=1.0, at=100.0, timed=10, seconds=0.1, dropped=0):
    """A few samples."""
    return parsed(TEXT.format(acked=acked, age=age, timed=timed, seconds=seconds, dropped=dropped), at, 0.01)


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


@pytest.fixture
def clock(tmp_path):
    """The clock of a test: 2 h ahead from 30 s to 40 s, 1 min behind from 60 s to 70 s; now is 110 s."""
    moment = 0.0
    made = JumpingClock(tmp_path / "clock", now=lambda: moment)
    for moment, ahead in ((0.0, 0.0), (30.0, 7200.0), (40.0, 0.0), (60.0, -60.0), (70.0, 0.0)):  # noqa: B007 a clock
        made.jump(ahead)
    moment = 110.0
    return made


def test_messages_that_landed_and_are_not_counted_are_found(clock):
    """Not those that may still be on their way to the count, and not those of other outcomes."""
    rows = [*(row(80.0 + number) for number in range(12)), row(99.0), row(81.0, "undecided")]
    landed = landed_messages(rows, [[0.0]], clock).by_life[0]

    assert ["confirm.classic: 10 counted, 12 landed"] == uncounted(scrape(acked=10), landed)
    assert [] == uncounted(scrape(acked=12), landed)


def test_messages_that_are_counted_and_did_not_land_are_found(clock):
    """Unless rows were dropped, which is counted."""
    landed = landed_messages([row(80.0 + number) for number in range(9)], [[0.0]], clock)

    assert ["confirm.classic: 9 landed, 10 counted"] == unlanded(scrape(acked=10), landed, 0)
    assert [] == unlanded(scrape(acked=9), landed, 0)
    assert [] == unlanded(scrape(acked=10, dropped=1), landed, 0)


def test_a_clock_that_jumped_back_showed_some_times_twice_and_others_never(clock):
    """At 65 s it showed 5 s, and at 35 s two hours more; it never showed an hour."""
    assert [5.0, 65.0] == clock.moments(5.0)
    assert [35.0] == clock.moments(7235.0)
    assert [] == clock.moments(3600.0)
    assert (0.0, 70.0) == (clock.ahead, clock.steady_since)


def test_landed_messages_are_assigned_to_lives_of_the_exporter_by_its_own_clock(clock):
    """What may be of two lives counts for neither; a time that the clock never showed is reported."""
    rows = [row(7235.0), row(5.0), row(80.0), row(3600.0)]

    landed = landed_messages(rows, [[0.0, 50.0], [55.0]], clock)

    assert {0: 1, 1: 1} == {life: len(known["confirm.classic"]) for life, known in landed.by_life.items()}
    assert ({"confirm.classic": 1}, 1) == (landed.ambiguous, landed.timeless)
    assert 2 == len(landed_messages(rows[:2], [[0.0]], clock).by_life[0]["confirm.classic"])


@pytest.mark.parametrize(("age", "found"), [(-0.1, 1), (0.0, 0), (99.0, 0), (3600.0, 1)])
def test_an_age_that_is_negative_or_longer_than_anything_lasted_is_found(age, found):
    """Everything was started 100 s ago."""
    assert found == len(wrong_ages(scrape(age=age), 100.0))


@pytest.mark.parametrize(("seconds", "found"), [(0.1, 0), (0.5, 0), (-0.9, 1), (700.0, 1)])
def test_latencies_that_are_negative_or_of_minutes_are_found(seconds, found):
    """Ten messages took 0.1 s in all until the scrape before, eleven until this one."""
    assert found == len(wrong_latencies(scrape(), scrape(timed=11, seconds=seconds)))


def findings(rule, since=50.0):
    """A document of `/api/v1/findings` with one warning."""
    began = datetime.fromtimestamp(since, UTC).isoformat()
    found = {"rule": rule, "severity": "warning", "certainty": "likely", "since": began, "subject": {"name": "orders"}}
    return {"clusters": [{"findings": [found]}]}


@pytest.mark.parametrize(("since", "found"), [(-3600.0, 1), (50.0, 0), (90.0, 1)])
def test_a_finding_that_began_before_everything_or_begins_in_the_future_is_found(since, found):
    """Everything was started at 10 s; it is 60 s."""
    assert found == len(wrong_beginnings(findings("node-down", 3600.0 + since), 3610.0, 3660.0))


@pytest.mark.parametrize(
    ("before", "rule", "during", "found"),
    [
        ("", "consumer-ack-timeout", "clock jumped back", 1),
        ("consumer-ack-timeout", "consumer-ack-timeout", "clock jumped back", 0),
        ("", "clock-skew", "clock jumped back", 0),
        ("", "management-overload", "clock jumped, polls silent", 0),
        ("", "node-down", "node killed", 0),
        ("", "stuck-consumer", "node killed", 1),
    ],
)
def test_a_jump_of_the_clock_justifies_no_finding_that_was_not_there_before(before, rule, during, found):
    """But that clocks differ."""
    watch = Watch(SimpleNamespace())
    if before:
        watch._judge(findings(before), 40.0, "node killed")
    for moment in (50.0, 51.0):
        watch._judge(findings(rule), moment, during)

    assert found == len({each.detail for each in watch.violations})


def test_a_missing_library_is_named_with_its_package(monkeypatch):
    """In one line."""
    monkeypatch.setattr(jumping_clock, "_PLACES", ("/nowhere",))

    with pytest.raises(MissingPart, match=r"^libfaketime is missing: .*apt-get install libfaketime$"):
        jumping_clock.faketime_library()


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
        "scrapes": 3000, "scrapes_failed": 4,
        "slowest_scrape": 0.2, "uncounted": [], "unlanded": [], "timeless": 0, "left": [],
        "violations_by_invariant": {"no counter goes backwards": 1}, "violations": [violation],
    }  # fmt: skip
    text = "\n".join(lines(document))

    assert "polled node frozen" in text
    assert "during node killed" in text
    assert max(map(len, text.splitlines())) <= 80
