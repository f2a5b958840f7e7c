"""Messages without a route at a broker that lists no channels: only the sum of the cluster is known."""

from dataclasses import replace

import pytest

from ackscope.findings import Certainty, FieldRef
from ackscope.second_source import MetricsReading
from ackscope.snapshot import Overview, Part
from diagnosis.preconditions import CLIENT_LISTS
from diagnosis.window import Window
from tests.unit.diagnosis.pictures import look, moment, queue, snapshot, stats, text

RULE = "pub-unroutable-dropped"
JOINED = MetricsReading(nodes=("rabbit@a", "rabbit@b"), families=("queues", "overview", "nodes"))


def seen(dropped, *, until=150, queues=lambda _: (), version="4.3.6", reading=JOINED):
    """Return the findings of this rule in a film of the sum, by second."""
    window = Window.empty("shop")
    for seconds in range(0, until, 5):
        counters = stats(publish=5000 + 30 * seconds, drop_unroutable=dropped(seconds))
        overview = Overview(rabbitmq_version=version, statistics=False, rates_mode="basic", stats=counters)
        taken = snapshot(seconds, overview=overview, queues=queues(seconds))
        known = Part(value=reading, at=moment(seconds))
        window = window.add(replace(taken, prometheus=known, **dict.fromkeys(CLIENT_LISTS, Part())))
    result = look(window)
    gaps = [gap.reason for gap in result.inconclusive if gap.rule == RULE]
    return [each for each in result.findings if each.rule == RULE], gaps


def fed_until(end, *, rate=6, name="invoices", vhost="eu"):
    """Return a film of a queue that gets messages until second `end`, and is consumed."""

    def film(t):
        number = int(300 + rate * min(t, end))
        return (queue(name=name, vhost=vhost, stats=stats(publish=number, deliver=number, ack=number)),)

    return film


def lost_from(begin, rate=6):
    """Return a sum that rises from second `begin` on."""
    return lambda t: int(40 + rate * max(0, t - begin))


@pytest.mark.parametrize(("rate", "begin"), [(6, 60), (90, 45)])
def test_a_queue_that_gets_no_more_when_a_loss_begins(rate, begin):
    """The messages were meant for it. The exchange is not known, so it is a warning at most."""
    ((finding,), gaps) = seen(lost_from(begin, rate), queues=fed_until(begin, rate=rate))
    report = text(finding)

    assert ("warning", "cluster", "shop") == (finding.severity.value, finding.subject.kind, finding.subject.name)
    assert pytest.approx(rate, rel=0.1) == finding.facts["lost_rate"]
    assert ["invoices"] == finding.facts["fed"] == [each.name for each in finding.involved.queues]
    assert FieldRef("/metrics", "rabbitmq_global_messages_unroutable_dropped_total") in finding.evidence[0].source
    assert "invoices" in report.summary
    assert any("channel_exchange_metrics" in (step.command or "") for step in report.steps)
    assert ["no_client_lists"] == gaps


def test_what_was_lost_all_the_time_does_not_hide_it():
    """Events without a subscriber are lost as before."""
    ((finding,), _) = seen(lambda t: lost_from(60)(t) + 2 * t, queues=fed_until(60))

    assert ("warning", ["invoices"]) == (finding.severity.value, finding.facts["fed"])


def test_it_is_information_for_a_minute():
    """A deployment binds its queue again."""
    ((finding,), _) = seen(lost_from(60), queues=fed_until(60), until=100)

    assert ("info", Certainty.EARLY) == (finding.severity.value, finding.certainty)


@pytest.mark.parametrize("queues", [lambda _: (), fed_until(1000), fed_until(20)], ids=["none", "goes on", "before"])
def test_a_loss_that_no_queue_shows_is_information(queues):
    """Events to which nobody subscribes are dropped, too."""
    ((finding,), _) = seen(lost_from(0), queues=queues)
    report = text(finding)

    assert ("info", []) == (finding.severity.value, finding.facts["fed"])
    assert "harmless" in report.summary


@pytest.mark.parametrize("dropped", [lambda _: 900, lambda t: 900 + 40 * (t >= 70)], ids=["never", "once"])
def test_no_steady_loss(dropped):
    """Earlier losses, and a burst."""
    assert [] == seen(dropped, queues=fed_until(60))[0]


def test_a_counter_that_begins_again():
    """A node restarted: it lost nothing since."""
    assert [] == seen(lambda t: 700 + 5 * t if t < 120 else 3)[0]


def test_counters_of_one_node_are_no_sum():
    """The other node may drop more, or restart."""
    assert ([], ["metrics_incomplete"]) == seen(lost_from(0), reading=replace(JOINED, unread={"b:15692": "refused"}))
