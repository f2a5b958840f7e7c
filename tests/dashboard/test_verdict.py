import pytest

from ackscope.findings import CannotTell, Severity
from dashboard.model import ClusterFindings
from dashboard.views import parts
from dashboard.views.verdict import headline
from tests.dashboard.answers import overflow, stuck

WELL = ClusterFindings(cluster="shop", checked=("no-consumer",))
ILL = ClusterFindings(cluster="shop", checked=("stuck-consumer",), findings=(stuck(), overflow(), overflow()))


@pytest.mark.parametrize(
    ("found", "age", "away", "text", "sure"),
    [
        pytest.param(WELL, 3.0, False, "Nothing wrong found", True, id="well"),
        pytest.param(ILL, 3.0, False, "1 critical, 2 warnings", True, id="ill"),
        pytest.param(ILL, 95.0, False, "1 min ago: 1 critical, 2 warnings", False, id="ill, and old"),
        pytest.param(WELL, 95.0, False, "1 min ago: nothing wrong found; now: cannot tell", False, id="well, but old"),
        pytest.param(WELL, 3.0, True, "3 s ago: nothing wrong found; now: cannot tell", False, id="exporter away"),
        pytest.param(WELL, None, False, "Cannot tell: no data from the broker yet", False, id="no broker yet"),
        pytest.param(None, None, True, "Cannot tell: no answer from the exporter", False, id="no exporter yet"),
        pytest.param(ClusterFindings(cluster="x"), 1.0, False, "Cannot tell: no rule was checked", False, id="blind"),
    ],
)
def test_headline(found: ClusterFindings | None, age: float | None, *, away: bool, text: str, sure: bool) -> None:
    """Good is only said of fresh data that was checked."""
    said = headline(found, age, away=away)

    assert (text, sure) == (said.text, said.sure)
    assert sure or said.look is not parts.GOOD


def test_a_silent_rule_is_no_clean_bill_of_health() -> None:
    """When no rule at all could answer, nothing is called good."""
    gap = CannotTell(rule="no-consumer", because="no queues", needs="permission")
    blind = ClusterFindings(cluster="shop", checked=("no-consumer",), cannot_tell=(gap,))

    assert "Cannot tell: no rule could answer" == headline(blind, 1.0, away=False).text


def test_some_silent_rules_are_said_beside_the_good_news() -> None:
    """What was checked is good; what was not is counted."""
    gap = CannotTell(rule="memory-alarm", because="no nodes", needs="permission")
    never = CannotTell(rule="consumer-ack-timeout", because="3.10", needs="", permanent=True)
    half = ClusterFindings(cluster="shop", checked=("no-consumer", "memory-alarm"), cannot_tell=(gap, never))

    assert "Nothing wrong found, 1 check without answer" == headline(half, 1.0, away=False).text


def test_every_severity_has_a_word_an_icon_and_a_colour() -> None:
    """Never a colour alone."""
    looks = [parts.SEVERITIES[severity] for severity in Severity]

    assert len(looks) == len({look.word for look in looks}) == len({look.icon for look in looks})
