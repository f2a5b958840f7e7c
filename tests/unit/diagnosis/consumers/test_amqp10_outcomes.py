"""AMQP 1.0 consumers that reject, or settle as modified with undeliverable-here, without a dead-letter exchange."""

import pytest

from ackscope.amqp10 import AmqpLink, AmqpSession
from ackscope.second_source import MetricsReading, NativeTotals, QueueTypeTotals
from ackscope.snapshot import Overview, Part
from diagnosis.text import render_inconclusive
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.consumers.results import inconclusive
from tests.unit.diagnosis.pictures import connection, consumer, film, full_text, look, moment, queue, stats

RULE = "reject-loss"
PEERS = {"engine": "10.0.0.7:50001 -> 10.0.0.1:5672", "standby": "10.0.0.8:50002 -> 10.0.0.1:5672"}


def session(name, settled, of="quotes"):
    """A session whose only link was sent what it settled and three more."""
    link = AmqpLink(
        handle=0, name=f"{name}-in", queue=of, credit=9, delivery_count=settled + 3, settled_by_sender=False
    )
    return AmqpSession(connection_name=PEERS.get(name, name), number=0, unsettled=3, consuming=(link,))


def attached(name, of="quotes"):
    """The consumer of this session."""
    return consumer(
        of,
        tag="0",
        channel_name=None,
        connection_name=PEERS.get(name, name),
        prefetch_count=None,
        session_number=0,
        link_name=f"{name}-in",
        credit=9,
    )


def frame(t, *, settled, rejected, of="quotes", kind="quorum", every=15.0, visitors=True):
    """Clients that settle so many messages a second of one queue; `rejected` of them are deleted.

    The totals are read every 15 s. Clients of AMQP 0-9-1 come and go all the time.
    """
    read = every * int(t / every)
    counts = {"delivered": sum(settled.values()) * read, "accepted": sum(settled.values()) * read - rejected(read)}
    totals = QueueTypeTotals(
        redelivered=0, rejected=int(rejected(read)), over_limit=0, **{name: int(n) for name, n in counts.items()}
    )
    native = NativeTotals(received=int(counts["delivered"]), awaited=0, unroutable=0, types={kind: totals})
    others = [connection(f"10.0.1.{int(t) % 200}:1 -> 10.0.0.1:5672", client_name="php")] if visitors else []
    return {
        "overview": Overview(
            rabbitmq_version="4.3.6", statistics=True, rates_mode="basic", stats=stats(publish=1000 + int(10 * t)),
            churn={"connection_closed": int(2 * t) if visitors else 0},
        ),
        "queues": (queue(of, type=kind, messages_unacked=3 * len(settled), consumers=len(settled), stats=stats()),),
        "consumers": tuple(attached(name, of) for name in settled),
        "connections": (
            *(connection(PEERS[name], client_name=name, container_id=name, protocol="AMQP 1-0") for name in settled),
            *others,
        ),
        "sessions": tuple(session(name, int(100 + rate * t), of) for name, rate in settled.items()),
        "prometheus": Part(value=MetricsReading(nodes=("rabbit@one",), native=native), at=moment(read), seconds=0.1),
    }  # fmt: skip


def losses(verdict):
    """The findings of the rule, in order."""
    return [each for each in verdict.findings if each.rule == RULE]


@pytest.mark.parametrize(
    ("rate", "share", "of", "kind"),
    [(6.0, 0.33, "quotes", "quorum"), (40.0, 0.9, "a.b-1", "classic"), (0.5, 0.4, "x", "quorum")],
)
def test_a_loss_that_goes_on_stays_reported(rate, share, of, kind):
    """Other clients open and close connections all the time, and readings of connections are held for some seconds."""
    clients = {"engine": rate, "standby": rate}
    for until in (60, 65, 70, 75, 100, 160, 300, 605, 1200):
        window = film(
            lambda t: frame(t, settled=clients, rejected=lambda at: 2 * rate * share * at, of=of, kind=kind),
            until=until,
        )
        (finding,) = losses(look(window))

        assert ("critical", of) == (finding.severity.value, finding.subject.name)
        assert share == pytest.approx(finding.facts["share"], abs=0.02)


def test_clients_that_settle_alike_are_candidates_and_none_is_accused():
    """Either of them can have rejected all that was rejected."""
    window = film(lambda t: frame(t, settled={"engine": 6, "standby": 6}, rejected=lambda at: 4 * at), until=90)
    (finding,) = losses(look(window))

    assert ((), (), tuple(PEERS.values())) == (
        finding.involved.clients,
        finding.involved.connections,
        finding.involved.one_of,
    )
    assert "One or more of 2 that qualify: 'engine'" in full_text(finding)
    assert "undeliverable-here" in full_text(finding)


@pytest.mark.parametrize(
    ("settled", "rate", "named"),
    [
        ({"engine": 20, "standby": 2}, 5, ("engine",)),
        ({"engine": 2, "standby": 30}, 9, ("standby",)),
        ({"engine": 8, "standby": 0}, 3, ("engine",)),
        ({"engine": 6, "standby": 6}, 11.9, ("engine", "standby")),
        ({"engine": 6}, 2, ("engine",)),
    ],
    ids=["more than the other settled", "the second one", "the other settled nothing", "nearly all", "alone"],
)
def test_a_client_is_named_if_others_cannot_have_rejected_so_many(settled, rate, named):
    """Nobody rejects more than it settles."""
    window = film(lambda t: frame(t, settled=settled, rejected=lambda at: rate * at), until=120)
    (finding,) = losses(look(window))

    assert (named, ()) == (tuple(sorted(finding.involved.clients)), finding.involved.one_of)
    assert list(named) == sorted(finding.facts["clients"])


def test_a_loss_that_ended_is_a_warning():
    """The client accepts again since second 60."""
    window = film(lambda t: frame(t, settled={"engine": 6}, rejected=lambda at: 3 * min(60, at)), until=150)

    assert ["warning"] == [each.severity.value for each in losses(look(window))]


@pytest.mark.parametrize("leaves", [50, 80])
def test_what_a_consumer_of_another_queue_rejected_is_not_theirs(leaves):
    """Its queue still has a consumer of AMQP 0-9-1, which acknowledges all."""

    def beside(t):
        made = frame(t, settled={"engine": 6}, rejected=lambda at: 4 * min(leaves, at))
        other = queue("refunds", type="quorum", consumers=2 - (t > leaves), stats=stats())
        made = {**made, "queues": (*made["queues"], other), "consumers": (*made["consumers"], consumer("refunds"))}
        if t > leaves:
            return made
        gone = "10.0.0.9:50003 -> 10.0.0.1:5672"
        return {
            **made,
            "consumers": (*made["consumers"], attached(gone, "refunds")),
            "connections": (*made["connections"], connection(gone, protocol="AMQP 1-0")),
            "sessions": (*made["sessions"], session(gone, int(10 * t), "refunds")),
        }

    for until in (leaves - 5, leaves + 5, leaves + 20, leaves + 40, leaves + 100):
        assert [] == losses(look(film(beside, until=until)))


def test_clients_that_accept_all_are_not_accused():
    """The total of rejected messages does not rise."""
    window = film(lambda t: frame(t, settled={"engine": 6, "standby": 9}, rejected=lambda _: 0), until=90)
    verdict = look(window)

    assert ([], []) == (losses(verdict), inconclusive(verdict, RULE))


@pytest.mark.parametrize(("rejected", "gaps"), [(0, 0), (7, 1)])
def test_one_look_knows_that_nothing_was_ever_rejected(rejected, gaps):
    """The total counts since the node started; one that is not zero may have risen long ago."""
    window = film(
        lambda t: frame(t, settled={"engine": 6}, rejected=lambda _: rejected), until=106.5, every=6.5, start=100
    )
    verdict = look(window, thresholds=Thresholds.brief())

    assert [] == losses(verdict)
    assert gaps == len(inconclusive(verdict, RULE))


def test_without_the_endpoints_it_is_said_what_is_missing():
    """Accepted and rejected messages leave alike, so the queue may lose some."""
    window = film(lambda t: {**frame(t, settled={"engine": 6}, rejected=lambda _: 0), "prometheus": Part()}, until=60)
    verdict = look(window)
    (gap,) = inconclusive(verdict, RULE)

    assert [] == losses(verdict)
    assert (False, ["'quotes' in vhost '/'"]) == (gap.permanent, gap.facts["names"])
    assert "prometheus.urls" in render_inconclusive(gap).needs
