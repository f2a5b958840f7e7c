import pytest

from ackscope.findings import QueueRef
from ackscope.topology import Link
from tests.unit.diagnosis.cluster.scenes import ONE, finding_of, reported
from tests.unit.diagnosis.pictures import WALL, channel, connection, consumer, film, look, queue, stats, text

RULE = "link-stalled"
TAKES = "10.0.0.1:40001 -> 10.0.0.1:5672"
HANGS = 40.0


def bridge(**fields):
    """A shovel from queue `outbox` to a broker elsewhere."""
    ends = {"source": "amqp://", "destination": "amqp://10.9.9.9", "source_queue": "outbox", "target_queue": "inbox"}
    defaults = {"name": "north", "vhost": "/", "node": ONE, "type": "dynamic", "state": "running"}
    return Link(kind="shovel", **{**defaults, **ends, **fields})


def frame(t, *, client="Shovel north", links=None, rate=6.0, prefetch=30, hangs=HANGS, name=TAKES):
    """The link moves all that is published until it hangs with its prefetch full."""
    published, moved = int(100 + rate * t), int(100 + rate * min(t, hangs))
    late = t > hangs
    held = min(prefetch, published - moved) if late else 0
    counters = stats(publish=published, deliver=moved + held, deliver_get=moved + held, ack=moved)
    idle = WALL + hangs + prefetch / rate if late and held == prefetch else None
    return {
        "queues": (
            queue(
                "outbox", messages_ready=published - moved - held if late else 0, messages_unacked=held, stats=counters
            ),
        ),
        "links": (bridge(),) if links is None else links,
        "consumers": (consumer("outbox", channel_name=f"{name} (1)", connection_name=name, prefetch_count=prefetch),),
        "connections": (connection(name, client_name=client),),
        "channels": (
            channel(f"{name} (1)", messages_unacked=held, prefetch_count=prefetch, idle_since=idle, stats=counters),
        ),
    }


def shown(until=120, **fields):
    """The result after some seconds."""
    return look(film(lambda t: frame(t, **fields), until=until))


@pytest.mark.parametrize("rate", [2.0, 6.0, 150.0])
@pytest.mark.parametrize("prefetch", [10, 30])
def test_a_shovel_that_waits_for_its_target_is_one_critical_finding(rate, prefetch):
    """Its state is running, and its consumer is not called stuck: a restart of an application would not help."""
    verdict = shown(rate=rate, prefetch=prefetch)
    (top,) = [each for each in verdict.findings if each.severity != "info"]

    assert (RULE, "critical", "north") == (top.rule, top.severity, top.subject.name)
    assert (QueueRef("/", "outbox"),) == top.involved.queues
    assert (prefetch, True, "inbox") == (top.facts["held"], top.facts["full"], top.facts["target_queue"])
    assert ["by_link"] == [each.reason for each in verdict.suppressed if each.rule == "stuck-consumer"]
    assert "thread dump" not in " ".join(step.text for step in text(top).steps)


def test_a_link_of_another_cluster_is_known_by_its_connection():
    """It is not in the list of links here."""
    client = "Federation link (upstream: hq, policy: all)"
    finding = finding_of(shown(client=client, links=()), RULE)

    assert (client, "federation", False) == (finding.subject.name, finding.facts["kind"], finding.facts["listed"])


@pytest.mark.parametrize(
    "fields",
    [{"hangs": 1000.0}, {"client": "billing", "links": ()}],
    ids=["it moves", "an application"],
)
def test_other_consumers_and_links_that_move_are_not_stalled(fields):
    """The same film without the fault, and with a consumer that is no link."""
    verdict = shown(**fields)

    assert [] == reported(verdict, RULE)
    assert ("client" in fields) == ("stuck-consumer" in [each.rule for each in verdict.findings])


@pytest.mark.parametrize(("sends", "expected"), [(6.0, []), (0.0, [("critical", "link", "north")])])
def test_a_shovel_without_a_channel_moves_messages_if_its_own_counter_rises(sends, expected):
    """Its source counts no deliveries and no acknowledgements (protocol local)."""

    def local(t):
        late = t > HANGS
        counters = stats(publish=int(100 + 6 * t))
        ready = int(6 * (t - HANGS)) if late else 0
        return {
            "queues": (queue("outbox", messages_ready=ready, messages_unacked=9, stats=counters),),
            "links": (
                bridge(destination="amqp://", forwarded=int(100 + 6 * min(t, HANGS) + sends * max(0, t - HANGS))),
            ),
            "consumers": (
                consumer("outbox", tag="north_1", channel_name=None, connection_name=None, prefetch_count=9),
            ),
        }

    assert expected == reported(look(film(local, until=160)), RULE)
