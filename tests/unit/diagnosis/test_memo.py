import gc
import weakref

from ackscope.findings import Impact, Inconclusive
from diagnosis.contract import Rule
from diagnosis.engine import diagnose
from diagnosis.memo import per_view
from diagnosis.thresholds import Thresholds
from diagnosis.view import View
from tests.unit.diagnosis.pictures import film


def test_a_thing_is_made_once_a_view():
    """The next view computes it again."""
    window = film(lambda _: {}, until=0)
    views = [View(window, (), window.latest.taken, Thresholds()) for _ in range(2)]
    made = []

    def make(view):
        made.append(view)
        return len(made)

    assert [1, 1, 2, 1] == [
        per_view(views[0], make),
        per_view(views[0], make),
        per_view(views[1], make),
        per_view(views[0], make),
    ]


def test_each_maker_has_its_own():
    """Functions with the same name do not share a result."""
    window = film(lambda _: {}, until=0)
    view = View(window, (), window.latest.taken, Thresholds())

    assert (0, 1) == (per_view(view, lambda _: 0), per_view(view, lambda _: 1))


class Holding:
    """A cached result that keeps a reference to its view."""

    def __init__(self, view):
        self.view = view


def test_a_look_leaves_nothing_behind():
    """A view is freed with its result. It holds all readings and must not wait for the cycle collector."""
    views = []

    def evaluate(view):
        views.append(weakref.ref(per_view(view, Holding).view))
        yield Inconclusive(rule="holds", reason="nothing")

    rule = Rule(name="holds", impact=Impact.RISK, needs=(), compares_counters=False, evaluate=evaluate)
    window = film(lambda _: {}, until=0)
    gc.disable()
    try:
        diagnose(window, (), window.latest.taken, Thresholds(), rules=(rule,))
        left = [view() for view in views]
    finally:
        gc.enable()

    assert [None] == left
