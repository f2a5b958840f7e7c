import pytest

from ackscope.topology import AuthAttempts
from tests.unit.diagnosis.pictures import NODE, film, found, look, only, told


def refusing(t, *, failed=0.5, total=None, protocol="amqp091", until=1e9, node=NODE):
    """So many refused logins a second."""
    done = int(failed * min(t, until))
    every = done if total is None else int(total * t)
    counts = AuthAttempts(node=node, protocol=protocol, total=100 + every, succeeded=100 + every - done, failed=done)
    return {"auth": (counts,)}


def test_refused_logins_are_a_warning_when_they_are_many():
    """More than five, and a fifth of all."""
    finding = only(look(film(refusing, until=30)))

    assert ("auth-failures", "warning", NODE) == (finding.rule, finding.severity, finding.subject.name)
    assert "15 of 15 in 30 s" in told(finding)


@pytest.mark.parametrize(
    "frame",
    [
        lambda t: refusing(t, failed=0.15),
        lambda t: refusing(t, failed=0.5, total=10),
        lambda t: refusing(t, until=10),
    ],
    ids=["few", "a small share", "over"],
)
def test_less_is_information(frame):
    """A scanner, a person who mistypes, a client that was mended."""
    assert [("auth-failures", "info", NODE)] == found(look(film(frame, until=30)))


@pytest.mark.parametrize(
    "frame",
    [
        lambda t: refusing(t, failed=0, total=5),
        lambda t: refusing(t, failed=0.05),
        lambda t: refusing(t, protocol="http"),
        lambda _t: {"auth": (AuthAttempts(node=NODE, protocol="amqp091"),)},
    ],
    ids=["none", "one slip", "the management API", "not told"],
)
def test_nothing_is_told_of_nothing(frame):
    """Our own polls over HTTP are told as polls that fail."""
    assert [] == found(look(film(frame, until=30)))


def test_a_node_that_began_anew_is_not_counted_across():
    """Its counters fell."""

    def frame(t):
        return {"auth": refusing(40)["auth"]} if t < 20 else {"auth": refusing(0)["auth"]}

    assert [] == found(look(film(frame, until=40)))
