from dataclasses import replace

import pytest

from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import PEER, connection, film, found, look, only


def leaking(t, rate=1.0, start=5, **fields):
    """A connection with this many more channels each second."""
    return {"connections": (connection(channels=int(start + rate * t), **{"channel_max": 2047, **fields}),)}


def test_a_connection_that_opens_channels_is_information():
    """With the time until it reaches its limit."""
    finding = only(look(film(leaking, until=30)))

    assert ("channel-leak", "info", PEER) == (finding.rule, finding.severity, finding.subject.name)
    expected = {"channels": 35, "channel_max": 2047, "growth": 25, "until_limit_seconds": 2012.0}
    assert expected == {key: finding.facts[key] for key in expected}
    assert ["open", "growth"] == [item.key for item in finding.evidence]


@pytest.mark.parametrize(
    ("start", "limit", "severity"), [(101, 2047, "warning"), (60, 100, "warning"), (95, 100, "critical"), (60, 0, None)]
)
def test_many_channels_are_a_warning_and_nearly_all_are_critical(start, limit, severity):
    """The limits are 100 channels, half and nine tenths of the negotiated maximum; 0 means no limit."""
    verdict = look(film(lambda t: leaking(t, rate=0, start=start, channel_max=limit), until=30))

    assert ([severity] if severity else []) == [finding.severity for finding in verdict.findings]


def test_a_pool_that_is_full_is_not_reported():
    """It was full before the first snapshot, or grows too little."""
    assert [] == found(look(film(lambda t: leaking(t, rate=0, start=60), until=60)))
    assert [] == found(look(film(lambda t: leaking(t, rate=0.2), until=60)))


def test_channels_that_are_closed_again_are_no_leak():
    """The number rises and falls."""
    assert [] == found(look(film(lambda t: leaking(0, start=30 + 20 * (int(t / 5) % 2)), until=60)))


def test_an_unknown_number_of_channels_is_not_reported():
    """An absent number counts neither as zero nor as many."""
    assert [] == found(look(film(lambda t: {"connections": (connection(channels=None),)}, until=60)))


def test_two_snapshots_are_enough():
    """Fifteen more in six seconds."""
    window = film(lambda t: leaking(t, rate=5), until=6, every=6)

    assert [("channel-leak", "info", PEER)] == found(look(window, thresholds=Thresholds.as_if_lasting()))


def test_several_connections_of_one_client_are_one_finding():
    """Each reaches its limit; a connection of another client is a finding of its own."""

    def frame(t):
        (first,) = leaking(t, rate=0, start=20, channel_max=20)["connections"]
        others = [replace(first, name=f"10.0.0.8:{port} -> 10.0.0.1:5672") for port in (50001, 50002)]
        return {"connections": (first, others[0], replace(others[1], client_name="mailer"))}

    verdict = look(film(frame, until=30))

    assert 2 == len(verdict.findings)
    assert {0, 1} == {len(each.consequences) for each in verdict.findings}
    assert {(True, None)} == {(it.facts["limit_reached"], it.facts["until_limit_seconds"]) for it in verdict.findings}
