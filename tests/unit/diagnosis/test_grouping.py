import pytest

from ackscope.findings import Finding, Impact, Severity, Subject
from diagnosis.contract import Explains, Rule
from diagnosis.grouping import group_by_cause
from diagnosis.relations import ANYWHERE, SAME_NODE, SAME_SUBJECT, SAME_VHOST
from diagnosis.thresholds import Thresholds
from diagnosis.view import View
from diagnosis.window import Window
from tests.unit.diagnosis.pictures import moment

VIEW = View(Window.empty("shop"), (), moment(0), Thresholds())


def rule(name, **explains):
    """Return a rule that explains others, by the names of relations."""
    relations = {"anywhere": ANYWHERE, "node": SAME_NODE, "subject": SAME_SUBJECT, "vhost": SAME_VHOST}
    reported = tuple(Explains(tuple(names), relations[where]) for where, names in explains.items())
    return Rule(
        name=name,
        impact=Impact.OUTAGE,
        needs=(),
        compares_counters=False,
        evaluate=lambda _: iter(()),
        explains=reported,
    )


def finding(rule_name, severity=Severity.WARNING, **subject):
    """Return a finding about a queue of the first node by default."""
    place = {"kind": "queue", "name": "orders", "vhost": "/", "node": "one", **subject}
    return Finding(
        rule=rule_name,
        severity=severity,
        subject=Subject(**place),
    )


def reported(findings, *rules):
    """Return the rules of the consequences by the rule of each cause."""
    causes = group_by_cause(findings, {each.name: each for each in rules}, VIEW)
    return {cause.rule: [other.rule for other in cause.consequences] for cause in causes}


def test_a_consequence_hangs_under_its_cause():
    """The order and the number of findings do not matter."""
    findings = [finding("stall"), finding("alarm", kind="node", name="one"), finding("blocked", name="stock")]

    assert {"alarm": ["stall", "blocked"]} == reported(findings, rule("alarm", anywhere=["stall", "blocked"]))


def test_chains_are_followed():
    """What follows from a consequence follows from its cause."""
    rules = (rule("down", node=["alarm"]), rule("alarm", anywhere=["stall"]))
    findings = [finding("stall", node=None), finding("alarm"), finding("down")]

    assert {"down": ["stall", "alarm"]} == reported(findings, *rules)


def test_two_that_explain_each_other_have_the_more_harmful_as_cause():
    """A cycle of explanations still has one cause."""
    rules = (rule("a", subject=["b"]), rule("b", subject=["a"]))

    assert {"a": ["b"]} == reported([finding("a"), finding("b")], *rules)
    assert {"b": ["a"]} == reported([finding("b"), finding("a")], *rules)


@pytest.mark.parametrize(
    ("where", "other", "hangs"),
    [
        ("node", {"node": "one", "name": "stock"}, True),
        ("node", {"node": "two"}, False),
        ("node", {"node": None}, False),
        ("subject", {}, True),
        ("subject", {"name": "stock"}, False),
        ("vhost", {"name": "stock"}, True),
        ("vhost", {"kind": "vhost", "name": "/", "vhost": None}, True),
        ("vhost", {"vhost": "shop"}, False),
    ],
)
def test_a_cause_explains_only_what_is_related(where, other, hangs):
    """A node that is down explains no finding about another node."""
    causes = reported([finding("cause"), finding("other", **other)], rule("cause", **{where: ["other"]}))

    assert hangs == (causes == {"cause": ["other"]})


def test_a_cause_is_as_urgent_as_the_worst_of_what_follows():
    """A cause takes over the severity of its worst consequence."""
    findings = [finding("other", Severity.CRITICAL), finding("cause", Severity.INFO)]
    (cause,) = group_by_cause(findings, {"cause": rule("cause", anywhere=["other"])}, VIEW)

    assert Severity.CRITICAL is cause.severity


def test_thousands_are_gathered_in_one_pass():
    """With 10,000 affected queues, comparing pairs would take 100 million comparisons."""
    findings = [finding("cause", name=f"q{n}") for n in range(5000)]
    findings += [finding("other", name=f"q{n}") for n in range(5000)]
    causes = group_by_cause(findings, {"cause": rule("cause", subject=["other"], anywhere=["nothing"])}, VIEW)

    assert 5000 == len(causes)
    assert all([cause.subject.name] == [each.subject.name for each in cause.consequences] for cause in causes)
