from ackscope.findings import Finding, Severity, Subject
from diagnosis.laws import without_explained

BEFORE, PREVIOUS, NOW = "2026-01-01T12:00:00Z", "2026-01-01T12:00:05Z", "2026-01-01T12:00:10Z"


def law(lost, queue="orders", last_seen=NOW):
    """A finding of the law about a queue that lost so many messages."""
    return counting("unexplained-loss", None, queue, last_seen, lost=lost)


def counting(rule, accounted, queue="orders", last_seen=NOW, over_since=None, **facts):
    """A finding that accounts for so many messages of a queue."""
    return Finding(
        rule=rule,
        severity=Severity.WARNING,
        subject=Subject(kind="queue", name=queue, vhost="/"),
        accounted=accounted,
        last_seen=last_seen,
        over_since=over_since,
        facts=facts,
    )


def reported(*findings):
    """What is left of these findings: rule, queue, and messages that other findings account for."""
    seen = {each.key for each in findings if each.last_seen == NOW}
    left = without_explained(findings, seen, PREVIOUS)
    return [(each.rule, each.subject.name, each.facts.get("accounted")) for each in left]


def test_what_a_finding_about_the_queue_accounts_for_is_not_reported_again():
    """The counts of both differ by some seconds; another queue explains nothing."""
    assert [("ttl-expiry-loss", "orders", None)] == reported(law(200), counting("ttl-expiry-loss", 170))
    assert ("unexplained-loss", "orders", 0) in reported(law(200), counting("ttl-expiry-loss", 200, queue="stock"))
    assert ("unexplained-loss", "orders", 90) in reported(law(200), counting("maxlen-drop-head", 90))


def test_a_finding_without_evidence_in_two_results_gives_way_to_the_law():
    """It hid what went on to be lost for as long as hysteresis held it."""
    held = counting("ttl-expiry-loss", 191, last_seen=BEFORE)

    assert [("unexplained-loss", "orders", 0)] == reported(law(229), held)


def test_a_finding_that_lacked_its_evidence_once_stays():
    """Else the two would alternate."""
    held = counting("ttl-expiry-loss", 191, last_seen=PREVIOUS)

    assert [("ttl-expiry-loss", "orders", None)] == reported(law(229), held)


def test_without_a_present_loss_it_stays_as_long_as_others():
    """The law reports another queue, or has itself no evidence any more."""
    held = counting("ttl-expiry-loss", 191, last_seen=BEFORE)

    assert ("ttl-expiry-loss", "orders", None) in reported(law(229, queue="stock"), held)
    assert ("ttl-expiry-loss", "orders", None) in reported(law(229, last_seen=BEFORE), held)


def test_what_happened_at_once_needs_no_new_evidence():
    """Readings are dropped with time, and a purge is seen no more; it still explains what is missing."""
    purge = counting("queue-purged", 229, last_seen=BEFORE, over_since=BEFORE)

    assert [("queue-purged", "orders", None)] == reported(law(229), purge)
