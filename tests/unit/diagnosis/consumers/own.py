"""Verdicts as far as the rules about consumers go: what others say of the same film is tested by others."""

from ackscope.findings import flat
from diagnosis.pages import pages

OWN = {name for name, page in pages().items() if page.group == "consumers"}


def own(verdict):
    """Findings of these rules that are causes, in order."""
    return [finding for finding in verdict.findings if finding.rule in OWN]


def found(verdict):
    """Rule, severity and name of each of them."""
    return [(finding.rule, finding.severity.value, finding.subject.name) for finding in own(verdict)]


def only(verdict):
    """The one that there must be."""
    (finding,) = own(verdict)
    return finding


def ever(verdicts):
    """Rules that spoke up at any time."""
    return {finding.rule for verdict in verdicts for finding in flat(verdict.findings) if finding.rule in OWN}


def aside(verdict):
    """What was left alone, and why."""
    return [(each.rule, each.subject.name, each.because) for each in verdict.suppressed if each.rule in OWN]


def gaps(verdict, rule):
    """What a rule could not tell."""
    return [gap for gap in verdict.inconclusive if gap.rule == rule]


def urgent(verdict):
    """Rule, severity and name of those that are more than information."""
    return [each for each in found(verdict) if each[1] != "info"]
