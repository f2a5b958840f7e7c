import pytest

from ackscope.findings import Severity
from ackscope.reports import InconclusiveReport
from dashboard.data.model import ClusterFindings
from dashboard.ui import elements
from dashboard.views.now.headline import DataAge, checked, headline
from tests.dashboard.answers import overflow, stuck

WELL = ClusterFindings(cluster="shop", checked=("no-consumer",))
ILL = ClusterFindings(cluster="shop", checked=("stuck-consumer",), findings=(stuck(), overflow(), overflow()))


@pytest.mark.parametrize(
    ("found", "age", "away", "text", "sure"),
    [
        pytest.param(WELL, 3.0, False, "Nothing wrong found", True, id="well"),
        pytest.param(ILL, 3.0, False, "1 critical, 2 warnings", True, id="ill"),
        pytest.param(ILL, 95.0, False, "1 min ago: 1 critical, 2 warnings", False, id="ill, and old"),
        pytest.param(
            WELL, 95.0, False, "1 min ago: nothing wrong found. Current state unknown", False, id="well, but old"
        ),
        pytest.param(WELL, 3.0, True, "3 s ago: nothing wrong found. Current state unknown", False, id="exporter away"),
        pytest.param(WELL, None, False, "Unknown: no data from the broker yet", False, id="no broker yet"),
        pytest.param(None, None, True, "Unknown: the exporter does not respond", False, id="no exporter yet"),
        pytest.param(ClusterFindings(cluster="x"), 1.0, False, "Unknown: no rule was evaluated", False, id="blind"),
    ],
)
def test_headline(found: ClusterFindings | None, age: float | None, *, away: bool, text: str, sure: bool) -> None:
    """Only fresh data that was checked is reported as healthy."""
    said = headline(found, DataAge(age, away))

    assert (text, sure) == (said.text, said.sure)
    assert sure or said.style is not elements.GOOD


@pytest.mark.parametrize(("overdue", "sure"), [(0.0, True), (35.0, False)])
def test_data_with_a_long_interval_is_stale_only_when_overdue(overdue: float, *, sure: bool) -> None:
    """An idle broker's queues are polled every 150 s: an age of 140 s is normal."""
    data = DataAge(140.0, overdue=overdue)

    assert sure == headline(WELL, data).sure
    assert sure == ("nothing newer is known" not in checked(WELL, data))


def test_inconclusive_rules_do_not_mean_healthy() -> None:
    """If all rules are inconclusive, the cluster is not reported as healthy."""
    gap = InconclusiveReport(rule="no-consumer", because="no queues", needs="permission")
    blind = ClusterFindings(cluster="shop", checked=("no-consumer",), inconclusive=(gap,))

    assert "Unknown: all rules are inconclusive" == headline(blind, DataAge(1.0)).text


def test_some_inconclusive_rules_are_counted() -> None:
    """Next to the good result of the others."""
    gap = InconclusiveReport(rule="memory-alarm", because="no nodes", needs="permission")
    never = InconclusiveReport(rule="consumer-ack-timeout", because="3.10", needs="", permanent=True)
    half = ClusterFindings(cluster="shop", checked=("no-consumer", "memory-alarm"), inconclusive=(gap, never))

    assert "Nothing wrong found, 1 check inconclusive" == headline(half, DataAge(1.0)).text


BLIND = InconclusiveReport(rule="memory-alarm", because="no nodes", needs="permission")
NEVER = InconclusiveReport(rule="consumer-ack-timeout", because="3.10", needs="", permanent=True)
RULES = ("no-consumer", "stuck-consumer", "memory-alarm", "consumer-ack-timeout")


@pytest.mark.parametrize(
    ("found", "age", "away", "text"),
    [
        pytest.param(WELL, 3.0, False, "1 rule evaluated on data 3 s old: 1 found nothing wrong.", id="well"),
        pytest.param(
            ClusterFindings(cluster="x", checked=RULES, inconclusive=(BLIND, NEVER), findings=(stuck(),)),
            3.0,
            False,
            "4 rules evaluated on data 3 s old: 1 with findings, 1 found nothing wrong, 1 inconclusive, "
            "1 that cannot be judged in this setup.",
            id="of each",
        ),
        pytest.param(
            WELL, 95.0, False, "1 rule evaluated on data 1 min old, nothing newer is known: 1 found nothing wrong.",
            id="old",
        ),
        pytest.param(
            WELL, 9.0, True, "1 rule evaluated on data 9 s old, nothing newer is known: 1 found nothing wrong.",
            id="exporter away",
        ),
        pytest.param(
            ClusterFindings(cluster="x", checked=RULES[2:3], inconclusive=(BLIND,)), 3.0, False,
            "1 rule evaluated on data 3 s old: 1 inconclusive.", id="blind",
        ),
        pytest.param(
            ClusterFindings(cluster="x"), None, False,
            "No rule was evaluated: there is no data of this cluster yet.", id="nothing yet",
        ),
    ],
)  # fmt: skip
def test_what_was_checked(found: ClusterFindings, age: float | None, *, away: bool, text: str) -> None:
    """Number of rules, age of the data, and number of inconclusive rules."""
    assert text == checked(found, DataAge(age, away))


def test_every_severity_has_a_word_an_icon_and_a_colour() -> None:
    """Never a colour alone."""
    looks = [elements.SEVERITIES[severity] for severity in Severity]

    assert len(looks) == len({look.word for look in looks}) == len({look.icon for look in looks})
