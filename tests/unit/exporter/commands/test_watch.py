from dataclasses import replace

from ackscope.findings import Severity
from diagnosis.text import render
from exporter.commands.watch import changes
from tests.unit.exporter.made import NOW, Verdicts, finding

QUIET = Verdicts().of("shop")
SICK = Verdicts(findings=(finding(),)).of("shop")
WORSE = Verdicts(findings=(replace(finding(), severity=Severity.CRITICAL),)).of("shop")


def reported(verdict, before):
    """The lines, without their moment."""
    return [line.removeprefix(f"{NOW.iso()} ") for line in changes(verdict, before, NOW)]


def test_only_what_changes_is_reported():
    """It begins, it gets worse, it ends; in between there is silence."""
    line = f"no-consumer: {render(finding()).summary} [diagnosis/catalogue/no-consumer.md]"

    assert [f"warning {line}"] == reported(SICK, QUIET)
    assert [] == reported(SICK, SICK)
    assert [f"critical {line}"] == reported(WORSE, SICK)
    assert ["ended: no-consumer: queue 'orders' in vhost '/'"] == reported(QUIET, WORSE)


def test_the_first_look_says_that_it_looks():
    """Silence at the beginning would look like a hang."""
    assert ["no findings yet; 2 rules are checked every 5 s"] == reported(QUIET, None)
    assert 1 == len(reported(SICK, None))
