"""Helpers that select results of the rules about consumers; findings of other rules are tested elsewhere."""

from ackscope.findings import flat
from diagnosis.pages import pages

OWN = {name for name, page in pages().items() if page.group == "consumers"}


def own(result):
    """Return the findings of these rules that are causes, in order."""
    return [finding for finding in result.findings if finding.rule in OWN]


def found(result):
    """Return rule, severity and name of each of these findings."""
    return [(finding.rule, finding.severity.value, finding.subject.name) for finding in own(result)]


def only(result):
    """Return the only such finding; fail if there is not exactly one."""
    (finding,) = own(result)
    return finding


def ever(results):
    """Rules that had a finding in any of these results, as a cause or as a consequence."""
    return {finding.rule for result in results for finding in flat(result.findings) if finding.rule in OWN}


def suppressed(result):
    """Return rule, name and reason code of each suppressed result."""
    return [(each.rule, each.subject.name, each.reason) for each in result.suppressed if each.rule in OWN]


def inconclusive(result, rule):
    """Return why a rule was inconclusive."""
    return [each for each in result.inconclusive if each.rule == rule]


def urgent(result):
    """Return rule, severity and name of the findings that are more than information."""
    return [each for each in found(result) if each[1] != "info"]
