from dataclasses import replace

import pytest

from ackscope.snapshot import HealthCheck
from ackscope.topology import Certificate
from tests.unit.diagnosis.nodes.machines import check
from tests.unit.diagnosis.pictures import NODE, OK, WALL, film, found, look, only, snapshot, text

RULE = "tls-certificate-expiry"
DAY = 86_400.0


def expiring(*days, ok=False):
    """Certificates of the node's listeners that expire in so many days."""
    listed = tuple(
        Certificate(node=NODE, protocol="amqp/ssl", port=5671 + place, expires=WALL + 5 + each * DAY)
        for place, each in enumerate(days)
    )
    return film(lambda _: {"health": check("certificate-expiration", ok=ok, certificates=listed)}, until=5)


@pytest.mark.parametrize(
    ("days", "severity", "words"),
    [
        (20.5, "warning", "expires in 20 days"),
        (3.5, "critical", "expires in 3 days"),
        (0.5, "critical", "expires within a day"),
        (-3, "critical", "expired 3 days ago"),
    ],
)
def test_it_is_a_warning_and_critical_in_the_last_week(days, severity, words):
    """With the day and the port."""
    finding = only(look(expiring(days)))

    assert (RULE, severity, NODE) == (finding.rule, finding.severity.value, finding.subject.name)
    assert words in text(finding).summary
    assert [{"protocol": "amqp/ssl", "port": 5671}] == [each.facts for each in finding.evidence]


@pytest.mark.parametrize(("days", "ahead", "reported"), [(10, -60, False), (70, 65, True)])
def test_days_are_counted_by_the_clock_of_the_broker(days, ahead, reported):
    """Ours is two months ahead of it, or behind."""
    health = expiring(days, ok=True).latest.health.value
    overview = replace(snapshot(0).overview.value, clock_offset=ahead * DAY)
    verdict = look(film(lambda _: {"health": health, "overview": overview}, until=5))

    assert reported == (RULE in {each.rule for each in verdict.findings})


def test_a_certificate_that_is_valid_for_long_is_not_reported():
    """The list names every certificate, whatever its date."""
    assert [] == found(look(expiring(200, ok=True)))


def test_one_finding_lists_all_listeners_of_a_node():
    """The one that expires first comes first; valid ones are left out."""
    finding = only(look(expiring(200, 25, 9.5)))

    assert [5673, 5672] == [each.facts["port"] for each in finding.evidence]
    assert 9.5 == pytest.approx(finding.facts["days_left"])


def test_a_check_that_fails_without_a_certificate_in_the_list_is_reported_all_the_same():
    """The list is read every 10 min, the check every few seconds."""
    finding = only(look(film(lambda _: {"health": check("certificate-expiration", reason="Certificates")}, until=5)))

    assert "warning" == finding.severity.value
    assert (None, ["unlisted"]) == (finding.facts["days_left"], [each.key for each in finding.evidence])


def test_a_check_that_fails_by_itself_is_inconclusive():
    """4.0 answers 500 for a listener without cacertfile."""
    broken = HealthCheck(name="certificate-expiration", ok=None, reason="broker:15672/api: 500 from the server")
    result = look(film(lambda _: {"health": (OK, broken)}, until=5))

    assert [] == found(result)
    assert ["check_fails"] == [gap.reason for gap in result.inconclusive if gap.rule == RULE]


def test_without_the_check_there_is_no_finding():
    """A broker without TLS has nothing to renew."""
    assert [] == found(look(film(lambda _: {}, until=5)))
