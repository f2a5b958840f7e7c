"""AMQP 1.0 consumers without a reported session or connection (4.0): judged by their queue."""

import pytest

from ackscope.second_source import MetricsReading, NativeTotals, QueueTypeTotals
from diagnosis.text import render_inconclusive
from tests.unit.diagnosis.consumers.results import found, inconclusive, only
from tests.unit.diagnosis.pictures import WALL, channel, connection, consumer, film, full_text, look, queue, stats

ONE, TWO, OTHER = (f"10.0.0.{number}:50001 -> 10.0.0.1:5672" for number in (7, 8, 9))


def client(name, vhost="/", since=0.0, **fields):
    """A connection as 4.0 tells it: no container id, no bytes, no channels."""
    own = {
        "protocol": "AMQP 1-0",
        "client_name": None,
        "user": "app",
        "channels": None,
        "peer_host": name.split(":")[0],
    }
    return connection(name, **{**own, "vhost": vhost, "peer_port": 50001, "connected_at": WALL + since, **fields})


def unattributed(of="billing", tag="0", **fields):
    """A consumer as 4.0 tells it: a queue and a tag."""
    own = {"channel_name": None, "connection_name": None, "peer_host": None, "peer_port": None, "prefetch_count": 0}
    return consumer(of, **{"tag": tag, **own, **fields})


def frame(*, ready=0, held=0, kind="quorum", clients=(ONE,), more=(), commands=None, totals=None, **fields):
    """A queue `billing` with one unattributed consumer, at a broker that tells no sessions."""
    parts = {
        "version": "4.0.5",
        "queues": (queue("billing", type=kind, messages_ready=ready, messages_unacked=held, stats=stats(), **fields),),
        "consumers": (unattributed(), *more),
        "connections": tuple(each if not isinstance(each, str) else client(each) for each in clients),
    }
    if commands is not None or totals is not None:
        native = NativeTotals(
            received=1000,
            awaited=1000,
            unroutable=0,
            types={kind: QueueTypeTotals(**(totals or {}))},
            commands={} if commands is None else {"/": {"billing": commands}},
        )
        parts["prometheus"] = MetricsReading(nodes=("rabbit@one",), native=native)
    return parts


def grows(t, rate=8.0, **more):
    """A consumer takes eight a second and settles none; the queue has the same work all the time."""
    return frame(held=10 + int(rate * t), reductions=int(5000 * t), **more)


def test_a_consumer_that_holds_more_and_more_is_stuck_and_its_only_client_is_named():
    """The broker does not say what it settles, and the finding does not either."""
    finding = only(look(film(grows, until=90)))

    assert ("stuck-consumer", "critical", "billing") == (finding.rule, finding.severity.value, finding.subject.name)
    assert ((ONE,), ()) == (finding.involved.connections, finding.involved.one_of)
    assert (True, 730) == (finding.facts["settles_unknown"], finding.facts["unacked"])
    for words in ("user 'app' at 10.0.0.7:50001", "the only AMQP 1.0 client that qualifies", "or fewer than they take"):
        assert words in full_text(finding)


def test_one_of_several_clients_is_not_guessed():
    """Connections of another virtual host, and later ones, are no candidates."""
    clients = (ONE, TWO, client(OTHER, vhost="/else"), client("10.0.0.6:1 -> 10.0.0.1:5672", since=80))
    finding = only(look(film(lambda t: grows(t, clients=clients), until=120)))

    assert ((), (ONE, TWO)) == (finding.involved.connections, finding.involved.one_of)
    assert () == finding.involved.clients
    assert "One or more of 2" in full_text(finding)


def test_a_client_that_names_itself_is_named():
    """The application may set the property connection_name."""
    finding = only(look(film(lambda t: grows(t, clients=(client(ONE, client_name="biller"),)), until=90)))

    assert ("biller",) == finding.involved.clients
    assert "'biller'" in full_text(finding)


@pytest.mark.parametrize(
    "healthy",
    [
        # More traffic, for which it holds more: the queue works more as well.
        lambda t: frame(held=10 + int(8 * t), reductions=int(100 * t * t)),
        # It collects a hundred, and settles them together.
        lambda t: frame(held=int(5 * t) % 100),
        lambda t: frame(held=40 + int(t) % 7),
        lambda t: frame(held=200 if t > 30 else 0),
        lambda t: frame(),
        # Three handlers, each busy with a message, at any time; messages come and go.
        lambda t: frame(held=3, ready=int(t) % 5),
    ],
    ids=["more traffic", "batches", "works", "one burst", "idle", "busy handlers"],
)
def test_healthy_consumers_are_not_accused(healthy):
    """Each of them holds messages at times, and the broker tells nothing else of them."""
    for until in (30, 60, 90, 200):
        assert [] == found(look(film(healthy, until=until)))


def test_more_consumers_hold_more():
    """A second consumer came: that it holds messages, too, proves nothing."""
    window = film(lambda t: grows(t, consumers=1 + int(t > 40), more=(unattributed(tag="1"),)), until=90)

    assert [] == found(look(window))


def no_credit(t, **more):
    """Five messages a second arrive, and none is ever held."""
    return frame(ready=5 + int(5 * t), **more)


def test_consumers_that_ask_for_nothing_are_named():
    """Messages are ready at each reading, and nobody holds one."""
    assert [("consumer-without-credit", "info", "billing")] == found(look(film(no_credit, until=30)))

    finding = only(look(film(lambda t: no_credit(t, clients=(ONE, TWO)), until=70)))

    assert ("critical", (ONE, TWO)) == (finding.severity.value, finding.involved.one_of)
    assert "The broker does not report credit" in full_text(finding)


@pytest.mark.parametrize(
    "other",
    [
        # Something else than arrivals happens: it takes messages and settles them between two readings.
        lambda t: no_credit(t, commands=100 + int(20 * t)),
        # What is settled when it is sent is never held.
        lambda t: {**no_credit(t), "consumers": (unattributed(ack_required=False),)},
        lambda t: frame(ready=max(0, 300 - int(t))),
        lambda t: no_credit(t, more=(consumer("billing", prefetch_count=10),)),
    ],
    ids=["its log moves", "settled when sent", "becomes shorter", "another consumer"],
)
def test_consumers_that_may_ask_are_not_reported(other):
    """Each differs from a consumer without credit in one thing."""
    assert "consumer-without-credit" not in {rule for rule, *_ in found(look(film(other, until=90)))}


def classic(t, share, held=15, **more):
    """A classic queue that grows by four a second, and the share of the time in which its consumers could take more."""
    return frame(ready=20 + int(4 * t), held=held, kind="classic", consumer_capacity=share, **more)


def blocked(t):
    """Its consumers could take more for 12 s, and since second 0 none can."""
    return classic(t, 12.0 / (12.0 + max(0.1, t)))


def test_a_classic_queue_tells_since_when_nobody_takes_more():
    """One divided by the share of the time rises in a straight line, so nothing was delivered, and nothing settled."""
    finding = only(look(film(blocked, until=60)))

    assert ("stuck-consumer", "critical") == (finding.rule, finding.severity.value)
    assert (15, True, False) == tuple(finding.facts[name] for name in ("unacked", "full", "settles_unknown"))


def test_a_look_at_a_later_time_knows_how_long_it_lasts():
    """Only 20 s were seen, and the line leads back to the beginning."""
    finding = only(look(film(blocked, until=320, start=300)))

    assert 310 < finding.facts["held_seconds"] < 330
    assert "critical" == finding.severity.value


def test_deliveries_bend_the_line_so_the_consumer_is_slow():
    """It takes one whenever it settles one; the queue grows all the same."""
    window = film(lambda t: classic(t, 0.0001 + 0.00003 * (int(t) % 3)), until=150)
    finding = only(look(window))

    assert ("slow-consumer", "warning", (ONE,)) == (
        finding.rule,
        finding.severity.value,
        finding.involved.connections,
    )
    assert "4/s more arrive than are settled" in full_text(finding)


def waits(t, extra, **more):
    """A quorum queue gets ten a second; its consumer always holds ten."""
    return frame(ready=30 + int(8 * t), held=10, commands=500 + int(8 * t + extra * t), **more)


def test_the_log_of_a_quorum_queue_tells_a_stuck_consumer_from_a_slow_one():
    """If it gains as many commands as the queue gains messages, all of them arrived."""
    stuck, slow = (only(look(film(lambda t, extra=extra: waits(t, extra), until=150))) for extra in (0, 6))

    assert ("stuck-consumer", "critical") == (stuck.rule, stuck.severity.value)
    assert ("slow-consumer", "warning") == (slow.rule, slow.severity.value)
    assert "raft_log_commit_index" in full_text(slow)


def test_without_the_log_it_is_inconclusive():
    """A consumer that settles a few and one that settles none look alike."""
    verdict = look(film(lambda t: frame(ready=30 + int(8 * t), held=10), until=150))

    assert [] == found(verdict)
    for rule in ("stuck-consumer", "slow-consumer"):
        (gap,) = inconclusive(verdict, rule)
        assert "'billing' in vhost '/'" in render_inconclusive(gap).because


def test_beside_consumers_with_channels_only_what_these_cannot_hold_counts():
    """The other consumer may hold ten; the queue holds hundreds more, and rising."""
    beside = consumer("billing", prefetch_count=10, channel_name=f"{TWO} (1)", connection_name=TWO)
    own = {"clients": (ONE, connection(TWO)), "more": (beside,)}

    def mixed(t, rate):
        made = grows(t, rate=rate, **own)
        return {**made, "channels": (channel(f"{TWO} (1)", messages_unacked=3),)}

    finding = next(
        each for each in look(film(lambda t: mixed(t, 8.0), until=90)).findings if each.rule == "stuck-consumer"
    )

    assert ("warning", (ONE,), False) == (
        finding.severity.value,
        finding.involved.connections,
        finding.facts["whole_queue"],
    )
    assert [] == found(look(film(lambda t: mixed(t, 0.0), until=90)))


def test_clients_that_are_not_known_are_not_guessed():
    """No connection uses AMQP 1.0, so the protocol of the consumer is unknown."""
    verdict = look(film(lambda t: grows(t, clients=(connection(TWO),)), until=90))

    assert [] == found(verdict)
    assert inconclusive(verdict, "stuck-consumer")


def counted(t, **rates):
    """A quorum queue, and totals of all AMQP 1.0 consumers of quorum queues."""
    return frame(held=5, totals={name: int(100 + rate * t) for name, rate in rates.items()})


CALM = {"delivered": 0, "accepted": 0, "redelivered": 0, "rejected": 0, "over_limit": 0}
LOOP = {**CALM, "delivered": 50, "redelivered": 48}
DROPS = {**CALM, "delivered": 40, "redelivered": 30, "over_limit": 2}
REJECTS = {**CALM, "delivered": 20, "accepted": 10, "rejected": 10}


@pytest.mark.parametrize(
    ("rates", "rule", "severity"),
    [(LOOP, "requeue-loop", "warning"), (DROPS, "poison-drop", "critical"), (REJECTS, "reject-loss", "critical")],
    ids=["loop", "delivery limit", "rejects"],
)
def test_totals_are_those_of_the_only_queue_with_such_consumers(rates, rule, severity):
    """They count what the queue does not."""
    limit = {"delivery_limit": 20}
    window = film(lambda t: _with(counted(t, **rates), **limit), until=60)
    finding = next(each for each in look(window).findings if each.rule == rule)

    assert (severity, "billing", (ONE,)) == (
        finding.severity.value,
        finding.subject.name,
        finding.involved.connections,
    )
    assert "/metrics" in full_text(finding)


def _with(made, **fields):
    (own,) = made["queues"]
    return {**made, "queues": (queue("billing", **{**_fields(own), **fields}),)}


def _fields(own):
    return {name: getattr(own, name) for name in ("type", "messages_ready", "messages_unacked", "stats")}


def test_a_queue_that_grows_because_its_messages_come_back_is_a_loop_and_not_slow():
    """Five a second arrive, and all of them are returned: its log moves, and its consumer always holds ten."""

    def loops(t):
        return waits(t, 90, totals={name: int(100 + rate * t) for name, rate in LOOP.items()})

    for until in (40, 100):
        assert ["requeue-loop"] == [rule for rule, *_ in found(look(film(loops, until=until)))]


def test_totals_that_do_not_rise_settle_it():
    """Nothing was returned or rejected, whichever queue it is, so these rules have nothing to say."""
    verdict = look(film(lambda t: counted(t, **CALM), until=60))

    assert [] == found(verdict)
    for rule in ("requeue-loop", "poison-drop", "reject-loss"):
        assert [] == inconclusive(verdict, rule)


@pytest.mark.parametrize(("rates", "rule"), [(LOOP, "requeue-loop"), (REJECTS, "reject-loss")], ids=["loop", "rejects"])
def test_totals_of_several_queues_name_none(rates, rule):
    """It may be either of them: inconclusive, with both names."""

    def two(t):
        made = counted(t, **rates)
        other = queue("refunds", type="quorum", messages_unacked=2, stats=stats())
        return {
            **made,
            "queues": (*made["queues"], other),
            "consumers": (*made["consumers"], unattributed("refunds", tag="4")),
        }

    verdict = look(film(two, until=60))

    assert rule not in {name for name, *_ in found(verdict)}
    assert ["'billing' in vhost '/'", "'refunds' in vhost '/'"] == [
        name for each in inconclusive(verdict, rule) for name in each.facts["names"]
    ]


def test_rejects_that_other_consumers_account_for_are_not_theirs():
    """A queue of AMQP 0-9-1 consumers rejects as many as the total says; its own counters tell."""

    def beside(t):
        made = counted(t, **{**CALM, "rejected": 10})
        # Its counters are some seconds old.
        gone = int(10 * max(0, t - 6))
        count = stats(publish=100 + gone, deliver=100 + gone, ack=100, deliver_get=100 + gone)
        other = queue("refunds", type="quorum", stats=count)
        return {**made, "queues": (*made["queues"], other), "consumers": (*made["consumers"], consumer("refunds"))}

    names = {name for rule, _, name in found(look(film(beside, until=60))) if rule == "reject-loss"}

    assert {"refunds"} == names


def test_probes_of_our_own_explain_rejects():
    """They reject on purpose, so the total proves nothing while they run."""

    def probed(t):
        made = counted(t, **REJECTS)
        return {**made, "connections": (*made["connections"], client(TWO, client_name="ackscope-probe-outcomes"))}

    verdict = look(film(probed, until=60))

    assert "reject-loss" not in {rule for rule, *_ in found(verdict)}
    assert inconclusive(verdict, "reject-loss")


@pytest.mark.parametrize("what", ["queue", "client"])
def test_what_others_did_who_are_gone_is_not_theirs(what):
    """Until second 40 another queue or client rejected; it went, and nothing was rejected since."""

    def leaves(t):
        made = frame(held=5, totals={**CALM, "rejected": int(10 * min(t, 40)), "delivered": int(20 * t)})
        if t > 40:
            return made
        if what == "client":
            return {**made, "connections": (*made["connections"], client(TWO))}
        return {**made, "queues": (*made["queues"], queue("gone", type="quorum", stats=stats()))}

    for until in (50, 60, 90):
        verdict = look(film(leaves, until=until))

        assert "reject-loss" not in {rule for rule, *_ in found(verdict)}
