import pytest

from ackscope.findings import flat
from ackscope.topology import Binding, Bindings, Exchange
from tests.unit.diagnosis.pictures import film, look, queue, stats, text

RULE = "hash-exchange-uneven"
NAMES = ("north", "east", "south", "west")


def divided(
    t,
    *,
    rates=(8.0, 0.0, 0.0, 0.0),
    before=(),
    at=0.0,
    weights=("1",) * 4,
    kind="x-consistent-hash",
    arguments=None,
    more=(),
):
    """An exchange with four queues, each of which gets messages at a rate of its own, and another one until `at`."""
    counts = [
        int(100 + old * min(t, at) + new * max(0.0, t - at)) for new, old in zip(rates, before or rates, strict=True)
    ]
    bindings = [
        Binding(vhost="iot", source="spread", destination=name, destination_type="queue", routing_key=weight)
        for name, weight in zip(NAMES, weights, strict=True)
    ]
    return {
        "queues": tuple(
            queue(
                name, vhost="iot", consumers=1, stats=stats(publish=count, deliver=count, ack=count, deliver_get=count)
            )
            for name, count in zip(NAMES, counts, strict=True)
        ),
        "bindings": Bindings(listed=(*bindings, *more)),
        "exchanges": (
            Exchange(vhost="iot", name="spread", type=kind, arguments=arguments or {}),
            Exchange(vhost="iot", name="all", type="fanout"),
        ),
    }


def reported(until=60, **options):
    """The finding; None without one."""
    result = look(film(lambda t: divided(t, **options), until=until))
    return next((each for each in flat(result.findings) if each.rule == RULE), None)


def test_all_messages_in_one_of_four_queues_are_named_with_the_header_that_is_missing():
    """The others have consumers that wait."""
    finding = reported(arguments={"hash-header": "tenant"})

    assert ("info", "exchange", "spread") == (finding.severity.value, finding.subject.kind, finding.subject.name)
    assert ("north", "tenant", ["east", "south", "west"]) == (
        finding.facts["queue"]["name"],
        finding.facts["header"],
        finding.facts["idle"],
    )
    assert (1.0, 0.25, False) == tuple(finding.facts[key] for key in ("share", "expected_share", "was_even"))
    assert "header 'tenant'" in text(finding).cause


@pytest.mark.parametrize("kind", ["x-consistent-hash", "x-modulus-hash"])
def test_it_is_known_since_when(kind):
    """It divided them until second 60."""
    finding = reported(until=130, kind=kind, before=(2.0,) * 4, at=60.0)

    assert finding.facts["was_even"]
    assert 50 <= finding.facts["over_seconds"] <= 70
    assert "it divided them before" in text(finding).summary


def test_a_queue_that_grows_is_a_consequence():
    """More consumers of one queue are no remedy."""

    def frame(t):
        made = divided(t)
        slow, *others = made["queues"]
        ready = int(6 * t)
        done = stats(publish=int(100 + 8 * t), deliver=int(100 + 2 * t), ack=int(100 + 2 * t))
        grows = queue(slow.name, vhost="iot", consumers=1, messages_ready=ready, messages_unacked=1, stats=done)
        return {**made, "queues": (grows, *others)}

    result = look(film(frame, until=200))
    (finding,) = (each for each in result.findings if each.rule == RULE)

    assert {each.subject.name for each in finding.consequences} <= {"north"}


@pytest.mark.parametrize(
    "options",
    [
        {"rates": (2.5, 2.0, 2.0, 1.5)},
        {"rates": (7.0, 1.0, 1.0, 1.0)},
        {"weights": ("70", "10", "10", "10")},
        {"kind": "direct"},
        {"rates": (0.5, 0.0, 0.0, 0.0)},
        {"more": (Binding(vhost="iot", source="all", destination="north", destination_type="queue"),)},
    ],
    ids=["even", "a large customer", "by weight", "direct", "few", "another binding"],
)
def test_what_is_divided_as_it_should_be(options):
    """Or may be."""
    assert reported(**options) is None
