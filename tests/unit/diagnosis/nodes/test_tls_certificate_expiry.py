import pytest

from ackscope.snapshot import HealthCheck
from ackscope.topology import Certificate
from tests.unit.diagnosis.nodes.machines import check
from tests.unit.diagnosis.pictures import NODE, OK, WALL, film, found, look, only, told

RULE = "tls-certificate-expiry"
DAY = 86_400.0


def ending(*days, ok=False):
    """Certificates of the node's listeners that end in so many days."""
    listed = tuple(
        Certificate(node=NODE, protocol="amqp/ssl", port=5671 + place, expires=WALL + 5 + each * DAY)
        for place, each in enumerate(days)
    )
    return film(lambda _: {"health": check("certificate-expiration", ok=ok, certificates=listed)}, until=5)


@pytest.mark.parametrize(
    ("days", "severity", "words"),
    [
        (20.5, "warning", "ends in 20 days"),
        (3.5, "critical", "ends in 3 days"),
        (0.5, "critical", "ends within a day"),
        (-3, "critical", "has ended since 3 days"),
    ],
)
def test_it_is_a_warning_and_critical_in_the_last_week(days, severity, words):
    """With the day and the port."""
    finding = only(look(ending(days)))

    assert (RULE, severity, NODE) == (finding.rule, finding.severity.value, finding.subject.name)
    assert words in finding.summary
    assert "certificate of amqp/ssl on port 5671" in told(finding)


def test_one_that_lasts_is_left_alone():
    """The list names every certificate, whatever its date."""
    assert [] == found(look(ending(200, ok=True)))


def test_one_finding_lists_all_listeners_of_a_node():
    """The one that ends first comes first; those that last are left out."""
    finding = only(look(ending(200, 25, 9.5)))

    assert ["certificate of amqp/ssl on port 5673", "certificate of amqp/ssl on port 5672"] == [
        item.what for item in finding.evidence
    ]
    assert "ends in 9 days" in finding.summary


def test_a_check_that_fails_without_its_list_tells_all_the_same():
    """The list is read every ten minutes, the check every few seconds."""
    finding = only(look(film(lambda _: {"health": check("certificate-expiration", reason="Certificates")}, until=5)))

    assert "warning" == finding.severity.value
    assert "ends within a month" in finding.summary


def test_a_check_that_fails_by_itself_is_told():
    """4.0 answers 500 for a listener without the file of an authority."""
    broken = HealthCheck(name="certificate-expiration", ok=None, reason="broker:15672/api: 500 from the server")
    verdict = look(film(lambda _: {"health": (OK, broken)}, until=5))

    assert [] == found(verdict)
    assert [RULE] == [gap.rule for gap in verdict.inconclusive if gap.rule == RULE]
    assert "cacertfile" in next(gap.needs for gap in verdict.inconclusive if gap.rule == RULE)


def test_without_the_check_nothing_is_said():
    """A broker without TLS has nothing to renew."""
    assert [] == found(look(film(lambda _: {}, until=5)))
