"""How the benchmark of losses compares what findings count with what was lost."""

import pytest

from bench.diagnosis.ledger import KINDS, PAIRS, LossRow, count_row, lines, polls_since_final
from bench.diagnosis.loss_counts import LOSSES, is_exact, lost_by
from bench.diagnosis.losses_across_restart import (
    RESTART_KINDS,
    RestartKind,
    RestartRow,
    judge,
    note,
    restart_goals,
    restart_lines,
)

LOSER = RestartKind(name="reject", rules=("reject-loss",), settles="reject")
HEALTHY = RestartKind(name="acked", settles="ack")


def finding(rule, **facts):
    """A finding as the API returns it."""
    return {"rule": rule, "facts": facts}


def pair(name):
    """The two losses in one queue of that name."""
    return next(kind for kind in PAIRS if kind.name == name)


def across(kind, *moments, lost=0, perhaps=0):
    """The row of a queue whose findings were seen at these moments after the restart."""
    row = RestartRow(broker="4.3.6", kind=kind.name, lost=lost, perhaps=perhaps)
    for findings in moments:
        note(row, kind, findings, (), after=True)
    judge(row, kind)
    return row


def test_only_rules_that_count_losses_are_counted():
    """Each names its number in its own way."""
    found = [finding("queue-purged", purged=7), finding("reject-loss", lost=3), finding("no-consumer", lost=5)]

    assert {"queue-purged": 7, "reject-loss": 3} == lost_by(found)


def test_what_the_law_leaves_to_others_is_counted_once():
    """It says how many of its messages other findings count."""
    found = [finding("queue-purged", purged=50), finding("unexplained-loss", lost=172, accounted=50)]

    assert {"queue-purged": 50, "unexplained-loss": 122} == lost_by(found)


@pytest.mark.parametrize(("counted", "lost", "exact"), [(98, 100, True), (97, 100, False), (1, 0, True), (2, 0, False)])
def test_a_count_may_be_off_by_two_percent_or_one_message(counted, lost, exact):
    """Whichever is more."""
    assert exact is is_exact(counted, lost)


@pytest.mark.parametrize("kind", [*KINDS, *PAIRS], ids=lambda kind: kind.name)
def test_each_kind_of_loss_is_named_by_rules_that_count(kind):
    """Otherwise no count of it is ever right."""
    assert set(kind.rules) <= set(LOSSES)
    assert set(kind.second) <= set(LOSSES)


def test_two_losses_in_one_queue_are_right_only_where_both_are_named():
    """A sum that one rule alone states names one of them."""
    kind = pair("reject + TTL")
    row = LossRow(broker="4.3.6", kind=kind.name, planted=[100, 50])
    count_row(row, [finding("reject-loss", lost=150)], kind, 3.0)
    sum_alone = (row.right, row.apart, row.seconds)
    count_row(row, [finding("reject-loss", lost=100), finding("ttl-expiry-loss", lost=50)], kind, 9.0)

    assert (False, False, 3.0) == sum_alone
    assert (True, True, 3.0) == (row.right, row.apart, row.seconds)


@pytest.mark.parametrize(
    ("counters", "polls"),
    [(["a", "b"], 1), (["a", "b", "b", "b"], 3), (["b", "a", "b"], 1), (["b", "b"], 2), ([], 0)],
)
def test_polls_count_from_the_first_one_with_the_final_counters(counters, polls):
    """The broker itself shows a loss some seconds late; this is what diagnosis adds."""
    assert polls == polls_since_final(counters)


def test_without_a_count_a_row_stays_as_it_is():
    """Findings that went away do not erase what was counted."""
    kind = pair("reject + purge")
    row = LossRow(broker="4.3.6", kind=kind.name, planted=[10, 20], counted=30, by_rule={"reject-loss": 30})
    count_row(row, [], kind, 1.0)

    assert (30, {"reject-loss": 30}) == (row.counted, row.by_rule)


def test_less_may_be_counted_across_a_restart_and_never_more():
    """What was lost before the restart is not seen by the counters after it."""
    less = across(LOSER, [finding("reject-loss", lost=60)], lost=100)
    more = across(LOSER, [finding("reject-loss", lost=120)], [finding("reject-loss", lost=60)], lost=100)

    assert ([], True, {"reject-loss": 60}) == (less.false, less.named, less.counted)
    assert ["120 counted, at most 100 lost"] == more.false


def test_a_message_that_was_not_confirmed_may_be_lost_too():
    """Nobody knows whether the broker had it."""
    assert [] == across(LOSER, [finding("reject-loss", lost=13)], lost=10, perhaps=2).false


def test_a_loss_by_another_cause_is_false():
    """Also of a queue that loses nothing."""
    blamed = across(LOSER, [finding("reject-loss", lost=50), finding("restart-loss", lost=9)], lost=100)
    healthy = across(HEALTHY, [finding("restart-loss", lost=9)])

    assert ["reported by restart-loss"] == blamed.false
    assert ["9 counted, at most 0 lost", "reported by restart-loss"] == healthy.false
    assert (1, 0) == tuple(goal.seen for goal in restart_goals([vars_of(healthy), vars_of(across(HEALTHY, []))]))


def vars_of(row):
    """A row as the document holds it."""
    return {name: getattr(row, name) for name in RestartRow.__dataclass_fields__}


def test_what_is_named_before_the_restart_must_be_named_after_it():
    """The counters start again, and so must the finding."""
    row = RestartRow(broker="4.3.6", kind=LOSER.name, lost=100)
    note(row, LOSER, [finding("reject-loss", lost=40)], (), after=False)
    before = row.named
    note(row, LOSER, [finding("reject-loss", lost=10)], (), after=True)

    assert (False, True) == (before, row.named)


def test_tables_show_both_sums():
    """What was lost, beside what was counted."""
    kind = pair("drop at a limit + purge")
    row = LossRow(broker="4.3.6", kind=kind.name, planted=[100, 50])
    count_row(row, [finding("unexplained-loss", lost=150)], kind, 3.0)
    document = {
        "rows": [{name: getattr(row, name) for name in LossRow.__dataclass_fields__}],
        "restarts": [],
        "false": [],
        "goals": [],
    }
    text = "\n".join(lines(document))
    restart = "\n".join(restart_lines([vars_of(across(LOSER, [finding("reject-loss", lost=9)], lost=10, perhaps=1))]))

    assert "100 + 50" in text
    assert "counted by other rules, drop at a limit + purge (4.3.6): {'unexplained-loss': 150}" in text
    assert "10 to 11" in restart


def test_names_of_kinds_are_different():
    """Queues are named after them."""
    names = [kind.name for kind in (*KINDS, *PAIRS)]

    assert len(names) == len(set(names))
    assert len({kind.name for kind in RESTART_KINDS}) == len(RESTART_KINDS)
