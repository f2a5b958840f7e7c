from ackscope.topology import Binding, Bindings, Exchange, Link
from tests.unit.diagnosis.cluster.scenes import ONE, finding_of, reported
from tests.unit.diagnosis.pictures import connection, consumer, film, look, queue, stats

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
