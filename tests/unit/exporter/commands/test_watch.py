from dataclasses import replace

from ackscope.findings import Severity
from diagnosis.text import render
from exporter.commands.watch import changes
from tests.unit.exporter.made import NOW, Verdicts, finding

QUIET = Verdicts().of("shop")
SICK = Verdicts(findings=(finding(),)).of("shop")
WORSE = Verdicts(findings=(replace(finding(), severity=Severity.CRITICAL),)).of("shop")


def reported(verdict, before):
    """Return the lines without their time."""
    return [line.removeprefix(f"{NOW.iso()} ") for line in changes(verdict, before, NOW)]


def test_only_what_changes_is_reported():
    """Lines are printed when a finding begins, gets worse or ends, and not in between."""
    line = f"no-consumer: {render(finding()).summary} [ackscope runbook no-consumer]"

    assert [f"warning {line}"] == reported(SICK, QUIET)
    assert [] == reported(SICK, SICK)
    assert [f"critical {line}"] == reported(WORSE, SICK)
    assert ["ended: no-consumer: queue 'orders' in vhost '/'"] == reported(QUIET, WORSE)


def test_the_first_look_says_that_it_looks():
    """Without a first line the command would seem to hang."""
    assert ["no findings yet; 2 rules are checked every 5 s"] == reported(QUIET, None)
    assert 1 == len(reported(SICK, None))
