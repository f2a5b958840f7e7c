from dataclasses import replace
from pathlib import Path

from ackscope.snapshot import Part
from exporter.collectors.contract import Limits
from exporter.exposition import Exposition
from exporter.live import polls
from exporter.state import State
from tests.unit.exporter.made import SetClock, promtool, small

GOLDEN = Path(__file__).with_name("metrics.txt")


def exposition(state, clock):
    """The text maker over a state, with the ages of polls as its only live part."""
    return Exposition(state, Limits(), {"polls": lambda: polls.collect(state.clusters(), {}, clock.now())}, clock)


def test_the_whole_text_of_a_small_cluster():
    """A change of any name, label, help or value shows in this file, which is what users hold on to."""
    clock, state = SetClock(), State(["shop"])
    state.put_snapshot(small())
    text = exposition(state, clock).text()

    assert GOLDEN.read_text() == text
    assert "" == promtool(text)


def test_a_scrape_makes_anew_only_what_can_have_changed():
    """Between two snapshots the broker's part is the same text, while ages grow."""
    clock, state = SetClock(), State(["shop"])
    maker = exposition(state, clock)
    state.put_snapshot(small())
    first = maker.text()
    clock.mono += 7
    second = maker.text()

    assert 'ackscope_poll_age_seconds{cluster="shop",family="queues"} 0\n' in first
    assert 'ackscope_poll_age_seconds{cluster="shop",family="queues"} 7\n' in second
    assert first.split("# HELP ackscope_poll")[0] == second.split("# HELP ackscope_poll")[0]


def test_a_new_snapshot_shows_at_once():
    """What was cached goes with the snapshot that it was made from."""
    clock, state = SetClock(), State(["shop"])
    maker = exposition(state, clock)
    state.put_snapshot(small())
    maker.text()
    clock.mono += 5
    overview = small().overview
    changed = replace(overview, value=replace(overview.value, messages=8), at=clock.now())
    state.put_snapshot(replace(small(), overview=changed))

    assert 'ackscope_cluster_messages{cluster="shop"} 8\n' in maker.text()


def test_before_the_first_snapshot_there_are_only_own_metrics():
    """Nothing is known, and nothing is said of the broker."""
    text = exposition(State(["shop"]), SetClock()).text()

    assert "rabbitmq_" not in text
    assert 'ackscope_collector_success{collector="queues"} 1\n' in text


def test_what_was_never_read_stays_absent():
    """A family that failed from the start has no sample, not a zero."""
    state = State(["shop"])
    state.put_snapshot(small(queues=Part(error="403")))
    text = exposition(state, SetClock()).text()

    assert "rabbitmq_queue_" not in text
    assert 'ackscope_poll_success{cluster="shop",family="queues"} 0\n' in text
