"""Traffic of the probes is never a finding: their queues, channels and connections are left out."""

import re
from pathlib import Path

import pytest

from ackscope.records import ProbeOutcome, ProbeState
from diagnosis.view import OWN_CLIENTS
from tests.unit.diagnosis.pictures import (
    ALARM,
    channel,
    connection,
    consumer,
    film,
    found,
    look,
    only,
    queue,
    stats,
)

ROOT = Path(__file__).parents[3]
NACKED = "10.0.0.2:40001 -> 10.0.0.1:5672"
REFUSES = {"x-max-length": 10, "x-overflow": "reject-publish", "x-message-ttl": 60_000}


def nacked(t):
    """The channel of the nack probe: it publishes, and nothing is ever confirmed."""
    return channel(
        f"{NACKED} (1)", confirm=True, consumer_count=0, stats=stats(publish=int(10 + 8 * t)), messages_unconfirmed=0
    )


def full(**fields):
    """A queue that would refuse the next message; what it refused is not known, because its messages expire."""
    return queue(messages_ready=10, messages=10, arguments=REFUSES, stats=stats(publish=10), **fields)


@pytest.mark.parametrize(("client", "severity"), [("ackscope-probe nack", "info"), ("shop", "critical")])
def test_a_probe_that_is_nacked_by_design_is_no_proof(client, severity):
    """An application's channel with the same counters next to a full queue of its vhost would be proof."""
    window = film(
        lambda t: {
            "queues": (full(),),
            "channels": (nacked(t),),
            "connections": (connection(NACKED, client_name=client),),
        },
        until=30,
    )

    assert [("pub-nacked-overflow", severity, "orders")] == found(look(window))


@pytest.mark.parametrize(
    "name",
    [
        "ackscope.probe.nack.classic",
        "ackscope.probe.redelivery.quorum@rabbit@one",
        "ackscope.probe.once.0123456789abcdef.nack.classic",
        "ackscope.probe.verify.0123456789abcdef.S31",
    ],
)
def test_queues_of_probes_are_the_subject_of_nothing(name):
    """They are full, without consumers, or with endless redeliveries by design."""

    def frame(t):
        counters = stats(publish=int(10 + 8 * t), redeliver=int(50 * t), deliver_get=int(50 * t), deliver=int(50 * t))
        limited = {"x-max-length": 10, "x-overflow": "reject-publish"}
        one = queue(name, messages_ready=10, messages_unacked=5, messages=15, arguments=limited, stats=counters)
        other = queue(f"{name}.dead", consumers=0, messages_ready=int(10 + 8 * t), stats=counters)
        return {"queues": (one, other), "consumers": (consumer(name),), "channels": (channel(messages_unacked=5),)}

    assert [] == found(look(film(frame, until=400)))


def test_connections_of_probes_are_not_among_the_blocked_ones():
    """A probe that is blocked is evidence as a probe, and not counted as a publisher."""
    connections = (
        connection("a", state="blocked"),
        *(connection(f"p{number}", state="blocking", client_name="ackscope-probe confirm") for number in range(14)),
    )
    window = film(lambda _: {"health": (ALARM,), "connections": connections}, until=0)
    finding = only(look(window))

    assert "memory-alarm" == finding.rule
    assert 1 == finding.facts["blocked_connections"]


@pytest.mark.parametrize("state", list(ProbeState))
def test_a_nack_probe_is_no_finding_whatever_it_says(state):
    """Its nacked messages are its purpose; a failure of it is an alert about the probe."""
    outcome = ProbeOutcome(
        probe="nack",
        stream="classic",
        queue_type="classic",
        vhost="/",
        queue="ackscope.probe.nack.classic",
        node="",
        at=0.0,
        state=state,
        reason=None if state is ProbeState.RUNNING else "it cannot measure",
        outcomes={"acked": 0, "nacked": 500},
    )

    assert [] == found(look(film(lambda _: {}, until=0), outcomes=(outcome,)))


def test_every_connection_of_the_probes_is_known_by_its_name():
    """The names are in the code of the probes; one with another prefix would pass for an application's."""
    text = "\n".join(file.read_text() for file in (ROOT / "probes").rglob("*.py"))

    assert set(OWN_CLIENTS) == set(re.findall(r"\"(ackscope-[a-z]+)", text))
