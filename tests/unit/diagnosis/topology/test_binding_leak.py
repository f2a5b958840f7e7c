import pytest

from ackscope.findings import flat
from ackscope.snapshot import Overview
from ackscope.topology import Binding, Bindings, Exchange
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import connection, consumer, film, look, queue, text

RULE = "binding-leak"


def bound(t, *, stock=600, rate=2.0, removed=0.0, kind="topic", queues=1, name="devices", listed=True):
    """An exchange with so many bindings, and so many more each second; some are removed."""
    first, last = int(removed * t), int(stock + rate * t)
    own = tuple(
        Binding(
            vhost="/", source=name, destination=f"inbox{n % queues}", destination_type="queue", routing_key=f"d.{n}"
        )
        for n in (range(first, last) if listed else ())
    )
    return {
        "exchanges": (Exchange(vhost="/", name=name, type=kind),),
        "bindings": Bindings(counts={("/", name): last - first, ("/", ""): 5000}, listed=own if listed else None),
        "queues": (queue("inbox0"),),
        "consumers": (consumer("inbox0"),),
        "connections": (connection(client_name="gateway"),),
    }


def said(until=240, *, thresholds=None, every=5.0, **fields):
    """The findings of this rule."""
    verdict = look(film(lambda t: bound(t, **fields), until=until, every=every), thresholds=thresholds)
    return [each for each in flat(verdict.findings) if each.rule == RULE]


@pytest.mark.parametrize("fields", [{}, {"rate": 5.0, "name": "x"}, {"rate": 0.5, "kind": "direct", "stock": 5000}])
def test_bindings_that_only_become_more_are_a_warning_after_three_minutes(fields):
    """Whatever the names and rates are."""
    (early,), (late,) = said(until=120, **fields), said(until=400, **fields)

    assert ("info", "warning") == (early.severity, late.severity)
    assert ("exchange", fields.get("name", "devices")) == (late.subject.kind, late.subject.name)


def test_the_finding_names_where_they_lead_to():
    """And the client that consumes from there."""
    (finding,) = said()

    assert ("inbox0", ["gateway"]) == (finding.facts["destination"], finding.facts["clients"])
    assert "lead to queue 'inbox0'" in text(finding).summary


@pytest.mark.parametrize(
    "fields",
    [{"rate": 0.0}, {"removed": 2.0}, {"stock": 10, "rate": 1.0}, {"queues": 10_000}],
    ids=["constant", "come and go", "few", "new queues"],
)
def test_other_bindings_are_no_leak(fields):
    """Each differs in one thing."""
    assert [] == said(**fields)


def test_bindings_that_are_made_at_once_are_no_growth():
    """A client that starts."""
    verdict = look(film(lambda t: bound(0, stock=700 if t > 20 else 500), until=200))

    assert [] == [each for each in flat(verdict.findings) if each.rule == RULE]


def test_bindings_that_are_made_at_once_and_then_replaced_are_no_growth():
    """A reading may fall between a new binding and the end of an old one."""
    verdict = look(film(lambda t: bound(0, stock=0 if t < 20 else 700 + (t >= 195)), until=200))

    assert [] == [each for each in flat(verdict.findings) if each.rule == RULE]


@pytest.mark.parametrize(("stock", "rate"), [(700, 10.0), (3000, 4.0)])
def test_growth_after_a_stock_that_is_made_at_once_is_found(stock, rate):
    """A client that binds what it knows when it starts, and then one key for each new device."""

    def starts(t):
        return bound(t - 20, stock=stock, rate=rate) if t > 20 else bound(0, stock=0)

    verdict = look(film(starts, until=65, every=15.0))

    assert [RULE] == [each.rule for each in flat(verdict.findings) if each.rule == RULE]


@pytest.mark.parametrize(
    ("kind", "stock", "many"), [("headers", 1200, True), ("topic", 1200, False), ("topic", 12_000, True)]
)
def test_very_many_bindings_are_information(kind, stock, many):
    """A headers exchange compares each message with all of them."""
    found = said(until=30, rate=0.0, kind=kind, stock=stock)

    assert (["info"] if many else []) == [each.severity for each in found]


def test_numbers_are_enough_above_the_limit_of_the_list():
    """Then it is not known where they lead to; new queues are those of the overview."""

    def frame(t):
        return {**bound(t, stock=30_000, listed=False), "overview": Overview(rabbitmq_version="4.3.6", queues=7)}

    verdict = look(film(frame, until=240))
    (finding,) = [each for each in flat(verdict.findings) if each.rule == RULE]

    assert ("warning", None) == (finding.severity, finding.facts["destination"])


def test_two_polls_find_it():
    """As one look does."""
    fields = {"until": 6, "every": 6.0, "rate": 10.0}

    assert ["info"] == [each.severity for each in said(thresholds=Thresholds.brief(), **fields)]
    assert ["warning"] == [each.severity for each in said(thresholds=Thresholds.as_if_lasting(), **fields)]


def test_readings_that_are_far_apart_show_it_too():
    """A busy broker is asked seldom."""
    assert ["warning"] == [each.severity for each in said(until=480, every=100.0)]
