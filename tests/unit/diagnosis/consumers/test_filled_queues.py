"""Who fills a queue without a consumer, and who should read it: what no-consumer adds to its finding."""

import pytest

from ackscope.findings import flat
from ackscope.topology import Binding, Bindings, Exchange, Link
from tests.unit.diagnosis.clients.loops import churning, loop, turns
from tests.unit.diagnosis.consumers.results import suppressed
from tests.unit.diagnosis.pictures import (
    PEER,
    channel,
    connection,
    consumer,
    film,
    full_text,
    look,
    queue,
    stats,
    text,
)


def lonely(result, name):
    """Return the finding of no-consumer about a queue, also if it is a consequence; None without one."""
    found = flat(result.findings)
    return next((it for it in found if (it.rule, it.subject.name) == ("no-consumer", name)), None)


def client(name, port, published, acked=0, **fields):
    """A client with one channel."""
    there = f"10.0.0.{port}:50000 -> 10.0.0.1:5672"
    mine = stats(publish=int(published), **({"deliver": int(acked), "ack": int(acked)} if acked else {}))
    return connection(there, client_name=name), channel(f"{there} (1)", stats=mine, consumer_count=int(acked > 0))


def scene(clients, queues, consumers=(), **more):
    """A snapshot of these clients, queues and consumers, each a queue and the port of a client."""
    return {
        "connections": tuple(there for there, _ in clients),
        "channels": tuple(own for _, own in clients),
        "queues": queues,
        "consumers": tuple(
            consumer(of, channel_name=f"10.0.0.{port}:50000 -> 10.0.0.1:5672 (1)",
                     connection_name=f"10.0.0.{port}:50000 -> 10.0.0.1:5672")
            for of, port in consumers
        ),
        **more,
    }  # fmt: skip


def growing(name, number, **fields):
    """A queue that nobody reads."""
    return queue(name, consumers=0, messages_ready=int(number), stats=stats(publish=int(number)), **fields)


def busy(name, number, held=0, **fields):
    """A queue whose consumers acknowledge all that comes."""
    counters = stats(publish=int(number), deliver=int(number), ack=int(number) - held)
    return queue(name, messages_unacked=held, stats=counters, **fields)


def stage(rate=10.0, share=1.0, *, errors="orders_error", held=0, others=0.0, shared=False, **more):
    """A worker that publishes this share of what it acknowledges to another queue; `others` publish elsewhere."""

    def frame(t):
        clients = [client("shop", 7, rate * t + 50), client("worker", 8, share * rate * t + 1, rate * t + 50)]
        queues = [growing(errors, share * rate * t + 1), busy("orders", rate * t + 50, held, consumers=1 + shared)]
        consumers = [("orders", 8)]
        if others:
            clients += [client("mailer", 9, others * t), client("post", 6, 0, others * t)]
            queues.append(busy("mails", others * t))
            consumers.append(("mails", 6))
        if shared:
            clients.append(client("billing", 5, 0, 10))
            consumers.append(("orders", 5))
        return scene(clients, tuple(queues), consumers, **more)

    return frame


@pytest.mark.parametrize("fields", [{}, {"rate": 90.0}, {"share": 0.9}, {"rate": 3.0, "errors": "next.step"}])
def test_a_client_that_publishes_all_that_it_acknowledges_is_named(fields):
    """An error queue and the next step of a pipeline look the same, and the cause says so."""
    finding = lonely(look(film(stage(**fields), until=200)), fields.get("errors", "orders_error"))

    assert (["worker"], ["orders"]) == tuple(finding.facts["passed_on"][key] for key in ("clients", "queues"))
    assert "Nearly all that 'worker' takes from queue 'orders' it publishes to this queue" in text(finding).cause
    assert "'worker', nearly all of what is published, consuming from 'orders'" in full_text(finding)
    assert "worker" in finding.involved.clients
    assert not any("purge" in (step.command or "") for step in text(finding).steps)


@pytest.mark.parametrize(
    "fields",
    [{"share": 0.5}, {"held": 3}, {"others": 40.0}, {"shared": True}],
    ids=["half of them fail", "its queue was never empty", "others may fill it", "another client consumes, too"],
)
def test_without_proof_no_client_is_said_to_pass_on_all(fields):
    """It may be somebody else, or it may be a part of its work."""
    assert lonely(look(film(stage(**fields), until=200)), "orders_error").facts["passed_on"] is None


def test_instances_of_one_application_count_together():
    """Each has a name of its own, and all consume from the same queue."""

    def frame(t):
        names = ("worker-1", "worker-2", "worker-3")
        clients = [client(name, place, 4 * t, 4 * t + 9) for place, name in enumerate(names, 1)]
        queues = (growing("orders_error", 12 * t), busy("orders", 12 * t + 9, consumers=3))
        return scene([client("shop", 7, 12 * t + 9), *clients], queues, [("orders", place) for place in (1, 2, 3)])

    finding = lonely(look(film(frame, until=120)), "orders_error")

    assert ["worker-1", "worker-2", "worker-3"] == finding.facts["passed_on"]["clients"]
    assert "'worker-1', 'worker-2', 'worker-3' take from queue 'orders' they publish" in text(finding).cause


def test_a_burst_of_failures_is_not_said_to_be_all():
    """The cause waits for a minute."""
    assert lonely(look(film(stage(), until=40)), "orders_error").facts["passed_on"] is None


@pytest.mark.parametrize(
    "fields",
    [{}, {"rate": 25.0, "share": 0.3}, {"rate": 4.0, "errors": "tickets_skipped"}],
    ids=["all", "some", "slow"],
)
def test_one_look_at_a_queue_that_a_consumer_of_another_one_fills_advises_no_purge(fields):
    """It may be for errors: the client that fills it knows which."""
    report = text(lonely(look(film(stage(**fields), until=40)), fields.get("errors", "orders_error")))

    assert "Nearly all that is published to this queue comes from 'worker'" in report.cause
    assert report.steps[0].text.startswith("Read the log of 'worker'")
    steps = " ".join(f"{step.text} {step.command}" for step in report.steps)
    assert not any(word in steps for word in ("purge", "remove the binding", "Start or scale"))


@pytest.mark.parametrize(("until", "severity"), [(100, "info"), (200, "warning")])
def test_a_queue_that_a_client_fills_is_a_warning_after_the_usual_time(until, severity):
    """A deployment of the next step of a pipeline looks the same for 3 min."""
    assert severity == lonely(look(film(stage(), until=until)), "orders_error").severity.value


def test_a_queue_that_its_publisher_alone_fills_may_be_purged():
    """That client consumes from no other queue, so it does not say that its work failed."""

    def frame(t):
        return scene([client("web", 3, 11 * t)], (growing("leads_error", 11 * t),))

    report = text(lonely(look(film(frame, until=40)), "leads_error"))

    assert report.steps[0].text.startswith("Start or scale")
    assert any("purge_queue" in (step.command or "") for step in report.steps)


@pytest.mark.parametrize(("share", "reported"), [(1.0, True), (0.1, False)])
def test_a_queue_for_failures_that_gets_everything_is_no_benign_one(share, reported):
    """By its name it needs no consumer; a client that fails on each message is a fault nevertheless."""
    result = look(film(stage(share=share, errors="orders.parking"), until=260))

    assert reported is (lonely(result, "orders.parking") is not None)
    assert reported is (("no-consumer", "orders.parking", "benign_name") not in suppressed(result))


def copying(*, copies=True):
    """A fanout to a consumed queue and to one without a consumer; the worker publishes its results elsewhere."""
    bindings = Bindings(
        listed=tuple(
            Binding(vhost="/", source="events", destination=name, destination_type="queue")
            for name in ("orders", "audit")
        )
    )

    def frame(t):
        both = int(10 * t)
        exchange = Exchange(
            vhost="/",
            name="events",
            type="fanout" if copies else "direct",
            stats=stats(publish_in=both + 9, publish_out=2 * (both + 9) if copies else both + 9),
        )
        clients = [client("shop", 7, 10 * t), client("worker", 8, 10 * t, 10 * t + 1)]
        queues = (growing("audit", 10 * t + 1), busy("orders", 10 * t))
        return scene(clients, queues, [("orders", 8)], bindings=bindings, exchanges=(exchange,))

    return frame


@pytest.mark.parametrize(("copies", "named"), [(True, []), (False, ["worker"])])
def test_a_copy_of_the_same_messages_is_not_from_the_consumer(copies, named):
    """What one exchange copies to both queues says nothing about the consumer of one of them."""
    finding = lonely(look(film(copying(copies=copies), until=60)), "audit")

    assert named == [name for each in finding.facts["publishers"] for name in each["clients"]]


@pytest.mark.parametrize(
    ("rates", "named"),
    [
        ({"web": 9.0}, [("web", 1.0)]),
        ({"web": 9.0, "mobile": 6.0}, [("web", 0.6), ("mobile", 0.4)]),
        ({"a": 2.0, "b": 2.0, "c": 2.0, "d": 2.0, "e": 2.0}, []),
    ],
    ids=["one", "two", "many"],
)
def test_publishers_are_named_with_their_shares(rates, named):
    """The largest first; where many publish, it is not proven how much each has sent here."""

    def frame(t):
        clients = [client(name, place, rate * t) for place, (name, rate) in enumerate(rates.items())]
        return scene(clients, (growing("inbox", sum(rates.values()) * t),))

    finding = lonely(look(film(frame, until=60)), "inbox")

    publishers = finding.facts["publishers"]
    assert named == [(*each["clients"], round(each["share"], 1)) for each in publishers]
    assert bool(named) is any(each.key == "filled_by" for each in finding.evidence)


def test_where_several_queues_are_filled_alike_nobody_is_named():
    """Each of the clients may be the one."""

    def frame(t):
        clients = [client(f"p{number}", number, 4 * t) for number in range(3)]
        return scene(clients, (growing("lonely", 4 * t), busy("one", 4 * t), busy("two", 4 * t)))

    assert [] == lonely(look(film(frame, until=60)), "lonely").facts["publishers"]


HOME = "amqp://10.0.0.1:5672"


def moved(until=200, **fields):
    """A shovel that takes half of the messages of a queue into another one that nobody reads."""
    link = Link(
        **{
            "kind": "shovel",
            "name": "move",
            "vhost": "/",
            "type": "dynamic",
            "state": "running",
            "source": HOME,
            "destination": HOME,
            "source_queue": "refunds",
            "target_queue": "refunds.tmp",
            **fields,
        }
    )

    def frame(t):
        half = int(6 * t + 50)
        bank = client("bank", 7, 2 * half)
        (there, own), (mover, moves) = client("refund-svc", 8, 0, half), client("Shovel move", 9, half, half)
        clients = [
            bank,
            (connection(there.name, client_name="refund-svc", user="shop", client_product="Pika"), own),
            (connection(mover.name, client_name="Shovel move", user="shop", client_product="RabbitMQ"), moves),
        ]
        queues = (growing("refunds.tmp", half), busy("refunds", 2 * half, consumers=2))
        return scene(clients, queues, [("refunds", 8), ("refunds", 9)], links=(link,))

    return look(film(frame, until=until))


def test_a_shovel_that_fills_a_queue_is_named_and_joined_with_its_source():
    """It takes messages from the consumers of another queue; both findings are about the shovel."""
    result = moved()
    (cause,) = [each for each in result.findings if each.rule in ("competing-applications", "no-consumer")]

    assert ("competing-applications", "warning") == (cause.rule, cause.severity.value)
    assert (
        "One of them is shovel 'move': it moves its part of the messages into queue 'refunds.tmp'." in text(cause).cause
    )
    finding = lonely(result, "refunds.tmp")
    assert "Shovel 'move' moves messages into it from queue 'refunds'." in text(finding).cause
    assert "rabbitmqctl clear_parameter -p / shovel move" in [step.command for step in text(finding).steps]
    assert "orphan-queue" not in {each.rule for each in flat(moved(until=700).findings)}


@pytest.mark.parametrize(
    "fields",
    [{"destination": "amqp://elsewhere:5672"}, {"state": "terminated"}, {"target_queue": "other"}],
    ids=["another cluster", "does not run", "another queue"],
)
def test_a_shovel_to_another_place_does_not_fill_it(fields):
    """The name of the queue alone is no proof."""
    assert [] == lonely(moved(**fields), "refunds.tmp").facts["shovel_moves"]


@pytest.mark.parametrize(("gone", "named"), [(5, ["ship.wait"]), (0, [])], ids=["they expire", "they stay"])
def test_a_queue_that_gets_expired_messages_names_the_delay_queue(gone, named):
    """They are not counted as published; nor are those of an MQTT client, which leave no other queue."""

    def frame(t):
        wait = {"x-message-ttl": 4000, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "ship"}
        arrived = int(20 + 5 * t)
        waiting = {"messages_ready": arrived - int(gone * t), "stats": stats(publish=arrived)}
        delay = queue("ship.wait", consumers=0, arguments=wait, **waiting)
        ship = queue("ship", consumers=0, messages_ready=int(5 * t), stats=stats(deliver=9, ack=9))
        return {"queues": (delay, ship)}

    finding = lonely(look(film(frame, until=60)), "ship")

    assert named == finding.facts["dead_letter_sources"]
    assert bool(named) is any(each.key == "filled_by" for each in finding.evidence)


def other_vhost(*, third=False, **fields):
    """A queue of the same name in another virtual host, which has consumers and gets nothing."""

    def frame(t):
        there = {"messages_ready": 0, "stats": stats(), **fields}
        queues = [growing("tickets", 4 * t), queue("tickets", vhost="b", **there)]
        if third:
            queues.append(queue("tickets", vhost="c", stats=stats(publish=9, deliver=9, ack=9)))
        link = consumer("tickets", vhost="b")
        mine = (connection(client_name="ticket-svc", vhost="b"),)
        return {"queues": tuple(queues), "consumers": (link,), "connections": mine}

    return frame


@pytest.mark.parametrize(("seconds", "severity"), [(30, "info"), (60, "warning")])
def test_consumers_that_wait_at_a_similar_queue_are_no_deployment(seconds, severity):
    """They are connected, so nobody has to wait for them; without them a deployment takes up to 3 min."""
    film_of = {True: other_vhost(), False: lambda t: {"queues": (growing("tickets", 4 * t),)}}
    found = {waits: lonely(look(film(frame, until=seconds)), "tickets") for waits, frame in film_of.items()}

    assert [severity, "info"] == [found[True].severity.value, found[False].severity.value]


@pytest.mark.parametrize(
    ("filled", "waiting", "named"),
    [
        ("parcels.v2", "parcels", True),
        ("parcels_V2", "parcels-v1", True),
        ("v3.parcels", "v2.parcels", True),
        ("parcels.2", "parcels.1", False),
        ("parcels.video", "parcels", False),
        ("parcels.v2", "returns.v2", False),
    ],
)
def test_consumers_of_another_version_of_a_queue_are_named(filled, waiting, named):
    """Publishers that were moved to a new queue before its consumers; a number alone is that of a shard."""

    def frame(t):
        idle = queue(waiting, messages_ready=0, stats=stats())
        return {"queues": (growing(filled, 4 * t), idle), "consumers": (consumer(waiting),)}

    finding = lonely(look(film(frame, until=60)), filled)

    assert named == (finding.facts["similar_queue"] == waiting)
    assert named == (finding.severity.value == "warning")


def test_a_consumer_of_the_same_queue_in_another_vhost_is_a_hint():
    """One of the two is connected to the wrong virtual host."""
    finding = lonely(look(film(other_vhost(), until=60)), "tickets")

    assert ("tickets", "b", ["ticket-svc"]) == tuple(
        finding.facts[key] for key in ("similar_queue", "similar_vhost", "similar_clients")
    )
    assert "'ticket-svc' consumes from a queue of the same name in vhost 'b'" in text(finding).cause
    assert "Compare the vhosts" in text(finding).steps[0].text


@pytest.mark.parametrize(
    "fields",
    [{"third": True}, {"stats": stats(publish=5, deliver=5, ack=5)}, {"messages_ready": 3}, {"consumers": 0}],
    ids=["one for each tenant", "it got messages", "it has messages", "nobody consumes there"],
)
def test_queues_of_tenants_are_no_hint(fields):
    """The same names in several virtual hosts are normal."""
    finding = lonely(look(film(other_vhost(**fields), until=60)), "tickets")

    assert finding.facts["similar_vhost"] is None


def publisher_moved(at=40, *, back=0):
    """A film in which a publisher moves to another virtual host, where nobody consumes from the queue of that name."""

    def frame(t):
        there = stats(**dict.fromkeys(("publish", "deliver", "ack"), int(5 * min(t, at - back))))
        queues = [queue("tickets", vhost="b", messages_ready=0, stats=there)]
        if t >= at:
            queues.append(growing("tickets", int(5 * (t - at)) + 1))
        mine = (connection(client_name="ticket-svc", vhost="b"),)
        return {"queues": tuple(queues), "consumers": (consumer("tickets", vhost="b"),), "connections": mine}

    return frame


@pytest.mark.parametrize(("back", "is_hint"), [(0, True), (35, False)])
def test_messages_that_go_on_in_another_vhost_are_a_hint(back, is_hint):
    """The publisher moved, so its messages must not be purged. An earlier end has another reason."""
    finding = lonely(look(film(publisher_moved(back=back), until=80)), "tickets")

    assert is_hint == (finding.facts["similar_vhost"] == "b")
    assert is_hint == ("got its last message when the first one arrived here" in text(finding).cause)
    assert is_hint == any("Do not purge this queue" in step.text for step in text(finding).steps)
    assert is_hint == (not any("purge_queue" in (step.command or "") for step in text(finding).steps))


def renamed(old="wages.v1", new="wages.v2", *, asks=None, used=True):
    """At second 20, a queue is deleted and another one grows; a client gets an error twice a second since."""
    error = f"NOT_FOUND - no queue '{asks or old}' in vhost '/'"

    def frame(t):
        done = turns(t, 2.0, 20.0)
        before = busy(old, 6 * min(t, 20) + 5) if used else growing(old, 5)
        queues = (growing(new, 6 * (t - 20) + 1),) if t > 20 else (before,)
        worker = loop(t, rate=2.0, began=20.0, sent=16 + 19 + len(error), received=91, client_name="worker")
        return {"overview": churning(t, channels=done), "connections": (worker,), "queues": queues}

    return frame


@pytest.mark.parametrize(("old", "new"), [("wages.v1", "wages.v2"), ("Orders-2024", "orders_2025"), ("bill", "bill2")])
def test_a_client_that_still_asks_for_the_old_name_of_a_queue_is_joined(old, new):
    """The broker's error is as long as with the name of the deleted queue."""
    result = look(film(renamed(old, new), until=120))
    finding = lonely(result, new)

    assert (old, True, ["worker"]) == tuple(
        finding.facts[key] for key in ("similar_queue", "similar_gone", "similar_clients")
    )
    assert "still consumes from the old queue" in text(finding).cause
    assert ["channel-churn"] == [each.rule for each in finding.consequences]
    assert "pub-missing-exchange" not in {each.rule for each in flat(result.findings)}
    assert PEER in finding.involved.connections


@pytest.mark.parametrize(
    "fields",
    [{"asks": "wages.version.1"}, {"new": "parcels"}, {"used": False}],
    ids=["another name", "not alike", "never consumed"],
)
def test_other_loops_are_not_joined(fields):
    """Nothing shows that the client lost this queue."""
    finding = lonely(look(film(renamed(**fields), until=120)), fields.get("new", "wages.v2"))

    assert (None, ()) == (finding.facts["similar_queue"], finding.consequences)
