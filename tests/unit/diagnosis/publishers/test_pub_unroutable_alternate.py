import pytest

from ackscope.topology import Binding, Bindings, Policy
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import film, look, queue, stats, text
from tests.unit.diagnosis.publishers.films import exchange, findings, of

RULE = "pub-unroutable-alternate"
ALTERNATE = {"alternate-exchange": "attic"}


def bound(source, destination, key=""):
    """A binding of a queue."""
    return Binding(vhost="/", source=source, destination=destination, destination_type="queue", routing_key=key)


def unbound(t, *, rate=6.0, box=None, attic=None, main=None, more=(), policies=()):
    """Exchange `mail` cannot route some messages a second; its alternate exchange keeps them in queue `box`."""
    number = int(40 + rate * t)
    there = {"consumers": 0, "messages_ready": number, "stats": stats(publish=number), **(box or {})}
    return {
        "queues": (queue("box", **there), queue("letters")),
        "exchanges": (
            exchange("mail", received=int(100 + 9 * t), routed=int(100 + 9 * t), **(main or {"arguments": ALTERNATE})),
            exchange("attic", type="fanout", **(attic or {})),
        ),
        "bindings": Bindings(listed=(bound("mail", "letters", "de"), bound("attic", "box"), *more)),
        "policies": policies,
    }


def shown(until, **fields):
    """The result after some seconds."""
    return look(film(lambda t: unbound(t, **fields), until=until))


BY_POLICY = {
    "main": {"policy": "safe"},
    "policies": (Policy(vhost="/", name="safe", pattern="^mail$", definition=ALTERNATE),),
}


@pytest.mark.parametrize("fields", [{}, BY_POLICY, {"rate": 0.7}], ids=["argument", "policy", "slow"])
def test_what_an_alternate_exchange_keeps_and_nobody_takes_is_a_warning_after_a_minute(fields):
    """A binding is missing, not a consumer; the queue without consumers is a consequence."""
    assert [("info", "queue", "box")] == of(shown(40, **fields), RULE)
    verdict = shown(75, **fields)
    assert [("warning", "queue", "box")] == of(verdict, RULE)
    (finding,) = findings(verdict, RULE)

    assert (["mail"], "attic") == (finding.facts["exchanges"], finding.facts["alternate"])
    assert not {"no-consumer", "orphan-queue"} & {each.rule for each in verdict.findings}
    assert not any("purge" in (step.command or "") for step in text(finding).steps)


def test_two_polls_are_enough():
    """The settings show it, and the queue grows."""
    window = film(unbound, until=6, every=6)

    assert [("warning", "queue", "box")] == of(look(window, thresholds=Thresholds.as_if_lasting()), RULE)


@pytest.mark.parametrize(
    "fields",
    [
        {"box": {"consumers": 1}},
        {"box": {"stats": stats(publish=500, deliver=20)}},
        {"attic": {"received": 50}},
        {"more": (bound("mail", "box", "fr"),)},
        {"rate": 0.0},
        {"main": {"arguments": {}}},
    ],
    ids=["consumed", "was consumed", "published to", "bound elsewhere too", "does not grow", "no alternate"],
)
def test_routes_that_are_meant_are_not_reported(fields):
    """Each differs in one thing."""
    assert [] == of(shown(75, **fields), RULE)


@pytest.mark.parametrize(("rate", "limit"), [(6.0, 40), (0.9, 5), (250.0, 3000)])
def test_what_a_full_queue_behind_it_drops_is_said_as_lost(rate, limit):
    """It was "keeps them", while each message that came pushed out another one."""

    def frame(t):
        full = {"messages_ready": limit, "messages": limit, "arguments": {"x-max-length": limit}}
        return unbound(t, rate=rate, box={**full, "stats": stats(publish=int(limit + rate * t))})

    verdict = look(film(frame, until=100))
    (finding,) = findings(verdict, RULE)

    assert ("warning", "loss") == (finding.severity.value, finding.impact.value)
    assert 80 * rate <= finding.facts["dropped"] <= 101 * rate
    assert "It is full and drops the oldest" in text(finding).summary
    assert "maxlen-drop-head" not in {each.rule for each in verdict.findings}
