from dataclasses import replace

import pytest

from diagnosis.text import Cluster, render
from tests.unit.diagnosis.consumers.results import ever, only
from tests.unit.diagnosis.pictures import WALL, channel, connection, consumer, film, full_text, look, queue, stats, text

JAVA, PIKA = ("shop", "RabbitMQ"), ("shop", "Pika Python Client Library")


def shared(*applications, each=(100, 100), of=None, served=1):
    """A queue whose consumers belong to these applications, and what each has been sent."""

    def frame(t):
        names = [f"10.0.0.{number}:5000 -> 10.0.0.1:5672" for number in range(len(applications))]
        sent = stats(publish=sum(each) + int(t), deliver=sum(each) + int(t), ack=sum(each) + int(t))
        return {
            "queues": (queue(consumers=len(names), stats=sent, **(of or {})),),
            "consumers": tuple(
                consumer(queue_name, tag=name, channel_name=f"{name} (1)", connection_name=name)
                for name in names
                for queue_name in ("orders", "bills")[:served]
            ),
            "channels": tuple(
                channel(f"{name} (1)", stats=stats(deliver=sent, ack=sent))
                for name, sent in zip(names, each, strict=True)
            ),
            "connections": tuple(
                connection(name, client_name=f"app-{number}", user=user, client_product=product)
                for number, (name, (user, product)) in enumerate(zip(names, applications, strict=True))
            ),
        }

    return frame


@pytest.mark.parametrize(
    ("applications", "each", "said"),
    [
        ((JAVA, PIKA), (300, 100), "'app-0' (RabbitMQ) 75 %, 'app-1' (Pika Python Client Library) 25 %"),
        ((JAVA, ("billing", "RabbitMQ")), (100, 100), "'app-1' (user 'billing') 50 %, 'app-0' (user 'shop') 50 %"),
    ],
    ids=["libraries", "users"],
)
def test_each_application_is_named_with_its_share(applications, each, said):
    """It may be meant, so it is information."""
    finding = only(look(film(shared(*applications, each=each), until=15)))

    assert ("competing-applications", "info", "orders") == (finding.rule, finding.severity, finding.subject.name)
    assert said in render(finding, Cluster((4, 0))).summary
    assert 2 == len(finding.involved.connections)


@pytest.mark.parametrize(
    "frame",
    [
        shared(JAVA, JAVA),
        shared(JAVA, PIKA, each=(1000, 10)),
        shared(JAVA, (None, "RabbitMQ")),
        shared(JAVA, PIKA, of={"type": "stream"}),
        shared(JAVA, PIKA, of={"arguments": {"x-single-active-consumer": True}}),
        shared(JAVA, PIKA, served=2),
    ],
    ids=["instances", "hardly takes any", "unknown", "stream", "single active", "several queues"],
)
def test_no_application_misses_what_it_should_see(frame):
    """Or nobody can tell."""
    assert "competing-applications" not in ever([look(film(frame, until=15))])


def polled(
    *polls,
    consumes=10.0,
    pollers=(("nagios", "shop", "Pika Python Client Library"),),
    counted=None,
    listed=True,
    automatic=False,
    worker=("worker-1", "shop", "RabbitMQ"),
    of=None,
    consumers=1,
    how="get_no_ack",
    again=0.0,
):
    """Queues `orders`, `q1`, ... read by a consumer each, and polled at these rates by one client each.

    `how` is the counter of the polled messages; `again` are redelivered per second.
    """

    def frame(t):
        counters = [
            stats(
                publish=int(2 * consumes * t),
                deliver=int(consumes * t) + int(again * t),
                ack=int(consumes * t),
                redeliver=int(again * t),
                **{how: int(rate * t)},
            )
            for rate in polls
        ]
        names = ["orders", *(f"q{number}" for number in range(1, len(polls)))]
        peers = [f"10.0.0.{place}:5000 -> 10.0.0.1:5672" for place in range(len(names))]
        others = [f"10.0.1.{place}:5000 -> 10.0.0.1:5672" for place in range(len(pollers))] if listed else []
        own = [int(rate * t) for rate in (counted or polls)]
        return {
            "queues": tuple(
                queue(name, consumers=consumers, stats=sent, **(of or {}))
                for name, sent in zip(names, counters, strict=True)
            ),
            "consumers": tuple(
                consumer(name, tag=name, channel_name=f"{peer} (1)", connection_name=peer, ack_required=not automatic)
                for name, peer in zip(names, peers, strict=True)
                if consumers
            ),
            "channels": (
                *(channel(f"{peer} (1)", stats=stats(deliver=int(consumes * t))) for peer in peers),
                *(
                    channel(f"{peer} (1)", consumer_count=0, stats=stats(**{how: own[place]}, deliver_get=own[place]))
                    for place, peer in enumerate(others)
                ),
            ),
            "connections": (
                *(connection(peer, client_name=worker[0], user=worker[1], client_product=worker[2]) for peer in peers),
                *(
                    connection(peer, client_name=name, user=user, client_product=product)
                    for peer, (name, user, product) in zip(others, pollers, strict=False)
                ),
            ),
        }

    return frame


def about_polls(frame, until=60):
    """The findings of this rule by queue: severity and client."""
    verdict = look(film(frame, until=until))
    return {
        each.subject.name: (each.severity.value, each.facts["polled"]["client"])
        for each in verdict.findings
        if each.rule == "competing-applications"
    }


WATCH, GATEWAY = ("watch", "shop", "Pika Python Client Library"), ("gateway", "legacy", "RabbitMQ")


@pytest.mark.parametrize(("rate", "consumes"), [(0.3, 10.0), (0.2, 300.0), (4.0, 9.0)])
def test_a_client_that_polls_for_good_beside_the_consumers_is_named(rate, consumes):
    """However few messages it polls: they are deleted."""
    finding = next(
        each
        for each in look(film(polled(rate, consumes=consumes), until=60)).findings
        if each.rule == "competing-applications"
    )

    assert ("warning", "orders") == (finding.severity, finding.subject.name)
    assert ("nagios", ["worker-1"]) == (finding.facts["polled"]["client"], finding.facts["polled"]["consumers"])
    assert {"nagios", "worker-1"} == set(finding.involved.clients)
    assert "Other queues" in full_text(finding)


def test_a_client_that_is_in_no_list_is_unknown():
    """It opens a connection for each poll."""
    assert {"orders": ("warning", None)} == about_polls(polled(0.3, listed=False))


def test_clients_are_distinguished_by_their_numbers():
    """Each polls a queue of its own, at its own rate; one polls both."""
    both = polled(0.3, 1.5, pollers=(WATCH, GATEWAY))
    one = polled(1.0, 1.5, pollers=(WATCH,), counted=(2.5,))

    assert {"orders": ("warning", "watch"), "q1": ("warning", "gateway")} == about_polls(both)
    assert {"orders": ("warning", "watch"), "q1": ("warning", "watch")} == about_polls(one)


@pytest.mark.parametrize(
    "frame",
    [
        # It polled as many from another queue.
        polled(0.3, 0.3, pollers=(WATCH,), counted=(0.3,)),
        # It polled fewer than the queue was polled.
        polled(2.0, pollers=(WATCH,), counted=(0.5,)),
        # Two clients polled as many.
        polled(1.0, 1.0, pollers=(WATCH, GATEWAY)),
    ],
    ids=["two queues", "too few", "two clients"],
)
def test_nobody_is_named_whose_numbers_prove_nothing(frame):
    """The loss is reported, and the client is unknown."""
    assert {("warning", None)} == set(about_polls(frame).values())


@pytest.mark.parametrize(
    "frame",
    [
        polled(0.3, consumes=0.0),
        polled(0.3, consumers=0),
        polled(0.3, of={"type": "stream"}),
        polled(0.0),
        polled(0.3, pollers=(("worker-2", "shop", "RabbitMQ"),)),
        polled(0.3, pollers=((None, "shop", "RabbitMQ"),), worker=(None, "shop", "RabbitMQ")),
    ],
    ids=["consumer gets none", "only polled", "stream", "not polled", "instance", "instance without a name"],
)
def test_polls_that_take_nothing_from_another_application(frame):
    """A queue belongs to the client that reads it."""
    assert {} == about_polls(frame)


def test_what_may_be_meant_is_information():
    """Consumers that acknowledge automatically; a client that may be an instance; one that gets most messages."""
    unsure = polled(0.3, pollers=((None, "shop", "RabbitMQ"),))
    frames = [polled(0.3, automatic=True), unsure, polled(30.0, consumes=10.0)]

    assert ["info"] * 3 == [about_polls(frame)["orders"][0] for frame in frames]


@pytest.mark.parametrize("later", [20, 120])
def test_one_look_of_a_person_is_information_for_some_minutes(later):
    """As "Get messages" of the management UI does."""

    def frame(t):
        return polled(1.0 / t if t >= 30 else 0.0, listed=False)(t) if t else polled(0.0, listed=False)(t)

    assert {"orders": ("info", None)} == about_polls(frame, until=30 + later)
    assert {} == about_polls(frame, until=400)


@pytest.mark.parametrize(
    "frame",
    [
        polled(1.5, how="get"),
        polled(40.0, how="get", consumes=60.0),
        polled(2.0, how="get", again=0.5),
    ],
    ids=["slow", "quick", "gives a quarter back"],
)
def test_a_client_that_polls_and_acknowledges_takes_messages_too(frame):
    """It may share the work, so that is information."""
    assert {"orders": ("info", "nagios")} == about_polls(frame)


def test_what_it_took_is_counted_without_what_came_back():
    """The text does not speak of automatic acknowledgement."""
    (finding,) = [
        each
        for each in look(film(polled(2.0, how="get", again=0.5), until=60)).findings
        if each.rule == "competing-applications"
    ]

    assert (90, False) == (finding.facts["polled"]["messages"], finding.facts["polled"]["automatic"])
    assert "and does not give the messages back" in text(finding).summary
    assert "automatic" not in full_text(finding).split("If it only tests", maxsplit=1)[0]


@pytest.mark.parametrize(
    "frame",
    [
        polled(2.0, how="get", again=2.0),
        polled(2.0, how="get", again=1.5),
        polled(0.05, how="get"),
        polled(2.0, how="get", consumers=0),
        polled(2.0, how="get", consumes=0.0),
        polled(2.0, how="get", of={"type": "stream"}),
        polled(2.0, how="get", pollers=(("worker-2", "shop", "RabbitMQ"),)),
        lambda t: polled(2.0, how="get", of={"messages_unacked": int(2 * t)})(t),
    ],
    ids=[
        "gives all back",
        "gives most back",
        "three messages",
        "only polled",
        "consumer gets none",
        "stream",
        "instance",
        "holds them",
    ],
)
def test_a_client_that_polls_and_takes_nothing_is_no_finding(frame):
    """Each differs in one thing."""
    assert {} == about_polls(frame)


def test_two_ways_of_polling_are_told_apart():
    """A person peeks and gives back, a check takes."""

    def frame(t):
        of = polled(1.0, how="get", again=1.0)(t)
        (there,) = of["queues"]
        taking = replace(there, stats=replace(there.stats, get_no_ack=int(0.5 * t)))
        peer = "10.0.2.1:5000 -> 10.0.0.1:5672"
        check = channel(f"{peer} (1)", consumer_count=0, stats=stats(get_no_ack=int(0.5 * t)))
        known = connection(peer, client_name="check", user="shop", client_product="curl")
        return {
            **of,
            "queues": (taking,),
            "channels": (*of["channels"], check),
            "connections": (*of["connections"], known),
        }

    assert {"orders": ("warning", "check")} == about_polls(frame)


def staging(t, *, joined=30.0, automatic=True, owner="staging", name="sms", rate=6.0):
    """A second application joins a queue in second `joined` and takes a third of the messages."""
    taken = int(rate / 3 * max(0.0, t - joined)) if t >= joined else 0
    others = int(100 + rate * t) - taken
    one, two = ("10.0.0.1:5000 -> b", "10.0.0.2:5000 -> b")
    here = t >= joined
    links = [consumer(name, tag="one", channel_name=f"{one} (1)", connection_name=one)]
    channels = [channel(f"{one} (1)", stats=stats(deliver=others, ack=others))]
    own = connection(one, client_name="sender", user="prod", client_product="RabbitMQ", connected_at=WALL - 900)
    connections = [own]
    if here:
        links.append(
            consumer(name, tag="two", channel_name=f"{two} (1)", connection_name=two, ack_required=not automatic)
        )
        counters = stats(deliver_no_ack=taken) if automatic else stats(deliver=taken, ack=taken)
        channels.append(channel(f"{two} (1)", stats=counters))
        connections.append(
            connection(
                two, client_name="sender (staging)", user=owner, client_product="RabbitMQ", connected_at=WALL + joined
            )
        )
    sent = stats(publish=others + taken, deliver=others, deliver_no_ack=taken, ack=others)
    return {
        "queues": (queue(name, consumers=len(links), stats=sent),),
        "consumers": tuple(links),
        "channels": tuple(channels),
        "connections": tuple(connections),
    }


@pytest.mark.parametrize(
    ("fields", "until", "severity"),
    [
        ({}, 70, "info"),
        ({}, 120, "warning"),
        ({"name": "q-1", "rate": 30.0}, 120, "warning"),
        ({"automatic": False}, 120, "info"),
    ],
    ids=["early", "late", "other names", "the same way"],
)
def test_an_application_that_takes_messages_for_good_beside_another_is_a_warning(fields, until, severity):
    """It acknowledges automatically and the other after its work, so these are two programs."""
    verdict = look(film(lambda t: staging(t, **fields), until=until))
    (finding,) = [each for each in verdict.findings if each.rule == "competing-applications"]

    assert severity == finding.severity
    assert (["sender (staging)"] if fields.get("automatic", True) else []) == finding.facts["automatic"]
    assert [] == [each for each in verdict.findings if each.rule == "auto-ack-consumer" and finding.facts["automatic"]]
