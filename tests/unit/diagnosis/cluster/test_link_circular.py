import pytest

from ackscope.topology import Binding, Bindings, Exchange, Link
from tests.unit.diagnosis.cluster.scenes import ONE, finding_of, reported
from tests.unit.diagnosis.pictures import channel, connection, consumer, film, look, queue, stats
from tests.unit.diagnosis.queues.films import of

RULE = "link-circular"
HOME = "amqp://10.0.0.1:5672"


def shovel(name, source, target=None, **fields):
    """A shovel between two queues."""
    ends = {"source": HOME, "destination": HOME, "source_queue": source, "target_queue": target}
    return Link(kind="shovel", name=name, vhost="/", node=ONE, type="dynamic", state="running", **{**ends, **fields})


def moving(t, name, rate=500.0, back=500.0):
    """A queue from which a shovel takes this many a second, and to which this many are published."""
    counters = stats(publish=int(back * t), ack=int(rate * t), deliver=int(rate * t) + 5, deliver_get=int(rate * t) + 5)
    return queue(name, messages_unacked=5, stats=counters)


def frame(*links, queues, **more):
    """Shovels, their queues, and their consumers."""
    return {
        "queues": queues,
        "links": links,
        "consumers": tuple(
            consumer(link.source_queue, channel_name=f"{link.name} (1)", connection_name=link.name) for link in links
        ),
        "connections": tuple(connection(link.name, client_name=f"Shovel {link.name}") for link in links),
        **more,
    }


def test_a_shovel_into_its_own_source_is_a_warning():
    """Nothing is lost, and nothing arrives."""
    window = film(lambda t: frame(shovel("a", "one", "one"), queues=(moving(t, "one"),)), until=30)

    assert [("warning", "link", "a")] == reported(look(window), RULE)


def test_two_shovels_to_and_fro_are_one_finding():
    """It names both."""
    links = (shovel("a", "one", "two"), shovel("b", "two", "one"))
    window = film(lambda t: frame(*links, queues=(moving(t, "one"), moving(t, "two"))), until=30)
    verdict = look(window)

    assert [("warning", "link", "a")] == reported(verdict, RULE)
    assert (["a", "b"], ["one", "two"]) == tuple(finding_of(verdict, RULE).facts[key] for key in ("links", "queues"))


def test_a_queue_that_gets_a_copy_in_each_round_makes_it_critical():
    """The exchange that the shovel publishes to routes to its source and to another queue."""
    link = shovel("a", "one", target_exchange="all", target_key="k")
    bindings = Bindings(
        listed=tuple(
            Binding(vhost="/", source="all", destination=name, destination_type="queue") for name in ("one", "audit")
        )
    )
    more = {"bindings": bindings, "exchanges": (Exchange(vhost="/", name="all", type="fanout"),)}
    window = film(lambda t: frame(link, queues=(moving(t, "one"), queue("audit")), **more), until=30)

    finding = finding_of(look(window), RULE)
    assert ("critical", ["audit"]) == (finding.severity, finding.facts["copies"])


def test_a_chain_of_shovels_is_not_reported():
    """It ends in a queue that no shovel takes from."""
    links = (shovel("a", "one", "two"), shovel("b", "two", "three"))
    window = film(lambda t: frame(*links, queues=(moving(t, "one"), moving(t, "two"), queue("three"))), until=30)

    assert [] == reported(look(window), RULE)


def test_the_same_names_in_another_cluster_are_no_circle():
    """A queue of the same name on both sides is usual."""
    link = shovel("a", "one", "one", destination="amqp://10.9.9.9")
    window = film(lambda t: frame(link, queues=(moving(t, "one"),)), until=30)

    assert [] == reported(look(window), RULE)


def test_a_circle_in_which_nothing_moves_is_not_reported():
    """Settings alone harm nobody."""
    window = film(lambda t: frame(shovel("a", "one", "one"), queues=(moving(t, "one", 0.0, 0.0),)), until=30)

    assert [] == reported(look(window), RULE)


def circulating(t, *, rate, queues, client="Shovel"):
    """Queues whose consumers, shovels or applications, publish each message to the next one; 12 messages go round."""
    counters = stats(publish=int(rate * t), ack=int(rate * t), deliver=int(rate * t) + 1, deliver_get=int(rate * t) + 1)
    return {
        "queues": tuple(queue(name, messages_ready=5, messages_unacked=1, stats=counters) for name in queues),
        "channels": tuple(channel(f"{name} (1)", connection_name=name, stats=counters) for name in queues),
        "consumers": tuple(consumer(name, channel_name=f"{name} (1)", connection_name=name) for name in queues),
        "connections": tuple(connection(name, client_name=f"{client} from-{name}") for name in queues),
    }


def warned(verdict):
    """Rules of the causes that are more than information."""
    return [each.rule for each in verdict.findings if each.severity.value != "info"]


@pytest.mark.parametrize("rate", [30.0, 900.0])
@pytest.mark.parametrize("names", [("north", "south"), ("x.b", "x.a", "x.c")])
def test_messages_that_shovels_move_in_a_circle_have_one_cause(names, rate):
    """The counters of queues and channels are those of consumers that publish what they take."""
    links = tuple(shovel(f"from-{a}", a, b) for a, b in zip(names, (*names[1:], names[0]), strict=True))
    verdict = look(film(lambda t: circulating(t, rate=rate, queues=names) | {"links": links}, until=70))

    assert ["link-circular"] == warned(verdict)
    assert 1 == len(of("republish-loop", verdict))


def test_applications_that_feed_each_other_are_no_shovels():
    """A shovel elsewhere explains nothing about them."""
    links = (shovel("a", "one", "one"),)

    def frame(t):
        return circulating(t, rate=30.0, queues=("north", "south"), client="service") | {"links": links}

    assert ["republish-loop"] == warned(look(film(frame, until=70)))
