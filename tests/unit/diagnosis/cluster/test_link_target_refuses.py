from dataclasses import replace

import pytest

from ackscope.findings import QueueRef
from ackscope.snapshot import Overview
from ackscope.topology import Link
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.cluster.scenes import ONE, finding_of, reported
from tests.unit.diagnosis.pictures import channel, connection, consumer, film, look, queue, stats

RULE = "link-target-refuses"
HOME = "amqp://10.0.0.1:5672"
TAKES, GIVES = "10.0.0.1:40001 -> 10.0.0.1:5672", "10.0.0.1:40002 -> 10.0.0.1:5672"
FULL = {"x-max-length": 20, "x-overflow": "reject-publish"}


def shovel(**fields):
    """A shovel from queue `ship` to queue `shore` of the same cluster."""
    defaults = {"name": "home", "vhost": "/", "node": ONE, "type": "dynamic", "state": "running"}
    ends = {"source": HOME, "destination": HOME, "source_queue": "ship", "target_queue": "shore"}
    return Link(kind="shovel", **{**defaults, **ends, **fields})


def source(t, *, returns=1000.0, moves=0.0, published=5.0, **fields):
    """The source: published, moved and returned a second; what is not moved stays."""
    left = int(20 + (published - moves) * t)
    counters = stats(
        publish=int(20 + published * t),
        deliver=int(20 + (returns + moves) * t),
        deliver_get=int(20 + (returns + moves) * t),
        redeliver=int(returns * t),
        ack=int(moves * t),
    )
    return queue("ship", messages_ready=0, messages_unacked=max(0, left), stats=counters, **fields)


def target(t, *, arrives=1000.0, **fields):
    """The target: full, and refusing what arrives."""
    counters = stats(publish=int(20 + arrives * t))
    defaults = {"messages_ready": 20, "consumers": 0, "arguments": FULL, "stats": counters}
    return queue("shore", **{**defaults, **fields})


def frame(t, *, link=None, client="Shovel home", here=True, confirm=True, **fields):
    """Both queues, and the connections of the shovel."""
    taken = source(t, **fields)
    return {
        "queues": (taken, *((target(t),) if here else ())),
        "links": () if link is False else (link or shovel(),),
        "consumers": (consumer("ship", channel_name=f"{TAKES} (1)", connection_name=TAKES, prefetch_count=1000),),
        "connections": (
            connection(TAKES, client_name=client),
            connection(GIVES, client_name=client),
        ),
        "channels": (
            channel(f"{TAKES} (1)", messages_unacked=taken.messages_unacked, stats=replace(taken.stats, publish=None)),
            channel(f"{GIVES} (1)", confirm=confirm, consumer_count=0, stats=stats(publish=int(1000 * t) + 1)),
        ),
    }


def shown(until=20, thresholds=None, **fields):
    """The result after some seconds."""
    return look(film(lambda t: frame(t, **fields), until=until), thresholds=thresholds)


def test_a_shovel_whose_target_is_full_is_one_critical_finding():
    """It names shovel, source and target; all that follows hangs under it."""
    verdict = shown()
    (top,) = [each for each in verdict.findings if each.severity != "info"]

    assert (RULE, "critical", "home") == (top.rule, top.severity, top.subject.name)
    assert (QueueRef("/", "ship"), QueueRef("/", "shore")) == top.involved.queues
    assert ("ship", "shore", 20, 20, 0) == (
        top.facts["source"]["name"],
        top.facts["target"]["name"],
        top.facts["target_ready"],
        top.facts["target_limit"],
        top.facts["moved"],
    )
    assert "pub-nacked-overflow" in [each.rule for each in top.consequences]
    assert "certain" == top.certainty


def test_no_requeue_loop_of_an_application_is_reported():
    """Its advice, to reject without requeue, would lose the messages of a shovel."""
    verdict = shown(60)

    assert "requeue-loop" not in [each.rule for each in verdict.findings]
    assert [("ship", "by_link")] == [
        (each.subject.name, each.reason) for each in verdict.suppressed if each.rule == "requeue-loop"
    ]


def test_two_readings_are_enough():
    """Each message was returned many times; a restart returns it once."""
    window = film(frame, until=6, every=6)

    assert [("critical", "link", "home")] == reported(look(window, thresholds=Thresholds.as_if_lasting()), RULE)


def test_a_target_in_another_cluster_is_likely():
    """Only the source shows it, also if a queue here has the name of the target."""
    far = shovel(destination="amqp://10.9.9.9/shop")

    for here in (False, True):
        finding = finding_of(shown(link=far, here=here), RULE)
        assert ("critical", "likely", None) == (finding.severity, finding.certainty, finding.facts["target"])
        assert ("shore", "amqp://10.9.9.9/shop") == (finding.facts["target_queue"], finding.facts["target_address"])


@pytest.mark.parametrize(
    ("client", "name"), [("Shovel home", "home"), ("Federation link (upstream: hq, policy: all)", None)]
)
def test_a_link_that_another_cluster_runs_is_known_by_its_connection(client, name):
    """It is not in the list of links here."""
    finding = finding_of(shown(link=False, here=False, client=client), RULE)

    assert (name or client, False) == (finding.subject.name, finding.facts["listed"])


def test_a_shovel_without_a_network_connection_is_known_by_its_source():
    """A direct connection has no client name."""

    def direct(t):
        made = frame(t)
        inner = "<rabbit@one.1.2.3>"
        return {
            **made,
            "consumers": (consumer("ship", channel_name=f"{inner} (1)", connection_name=inner),),
            "connections": (connection(inner, client_name=None, protocol="Direct 0-9-1"),),
            "channels": (channel(f"{inner} (1)", stats=made["queues"][0].stats),),
        }

    assert [("critical", "link", "home")] == reported(look(film(direct, until=20)), RULE)


def test_a_local_shovel_is_known_by_its_own_counter():
    """Its source counts no deliveries, and its target no publishes."""

    def local(t, keeps=5.0, before=20, ready=20):
        left = int(before + keeps * t)
        taken = queue("ship", messages_ready=0, messages_unacked=left, stats=stats(publish=int(20 + 5 * t)))
        given = target(t, stats=stats(), messages_ready=ready)
        link = shovel(source="", destination="", forwarded=int(2000 * t))
        inside = consumer("ship", tag="home_1_receiver", channel_name=None, connection_name=None)
        return {"queues": (taken, given), "links": (link,), "consumers": (inside,)}

    assert [("critical", "link", "home")] == reported(look(film(local, until=30)), RULE)
    catching_up = look(film(lambda t: local(t, -1995.0, 100_000, ready=5), until=30))
    assert [] == reported(catching_up, RULE)


def test_a_shovel_that_does_not_wait_for_confirms_loses_what_is_refused():
    """The source is drained, the target stores nothing."""
    verdict = shown(returns=0.0, moves=5.0, confirm=False)
    finding = finding_of(verdict, RULE)

    assert ("critical", True, 50) == (finding.severity, finding.facts["loses"], finding.facts["lost"])
    assert [] == reported(shown(returns=0.0, moves=5.0, confirm=True), RULE)


def test_some_messages_that_arrive_make_it_a_warning():
    """The target is drained slowly, and the source does not grow."""
    far = shovel(destination="amqp://10.9.9.9/shop")

    assert [("warning", "link", "home")] == reported(shown(moves=5.0, link=far, here=False), RULE)


@pytest.mark.parametrize(
    "fields",
    [{"returns": 0.0, "published": 0.0}, {"returns": 0.0, "moves": 500.0}, {"client": "billing", "link": False}],
    ids=["at rest", "catches up", "an application"],
)
def test_other_links_are_not_reported(fields):
    """A shovel that has nothing to do or works, and a consumer that is none."""
    assert [] == reported(shown(60, **fields), RULE)


def test_a_restart_of_the_shovel_is_not_reported():
    """Each message that it held is redelivered once."""

    def restarted(t):
        made = frame(t, returns=0.0, moves=5.0)
        taken = source(t, returns=0.0, moves=5.0)
        counters = stats(publish=120, deliver=1000, deliver_get=1000, redeliver=900 if t > 10 else 0, ack=100)
        again = queue("ship", messages_ready=0, messages_unacked=900, stats=counters)
        return {**made, "queues": (again if t > 10 else taken,)}

    assert [] == reported(look(film(restarted, until=40)), RULE)


@pytest.mark.parametrize(
    ("version", "limit", "after"), [("3.10.8", 3, 3), ("4.0.5", 20, 20), ("4.3.6", 20, None), ("3.10.8", None, None)]
)
def test_a_delivery_limit_counts_the_returns_before_4_3(version, limit, after):
    """Then messages are deleted or dead-lettered, which the finding must say."""
    kind = {"type": "quorum", "arguments": {} if limit is None else {"x-delivery-limit": limit}}

    def made(t):
        overview = Overview(rabbitmq_version=version, statistics=True, rates_mode="basic", stats=stats(publish=1000))
        return {**frame(t, **kind), "overview": overview}

    assert after == finding_of(look(film(made, until=20)), RULE).facts["drops_after"]
