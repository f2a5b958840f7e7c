from dataclasses import replace
from itertools import pairwise

import pytest

from ackscope.topology import Binding, Bindings, Exchange, Policy
from tests.unit.diagnosis.pictures import film, look, queue, stats, text

OTHER = Binding(vhost="/", source="shop", destination="audit", destination_type="queue", routing_key="audit")
REMOVED = Binding(vhost="/", source="shop", destination="orders", destination_type="queue", routing_key="order")


def unbound(t, *, at=30.0, routed=False, lost=(REMOVED,), queues=("orders", "audit"), **exchange):
    """Ten messages per second, which reach a queue until its binding is removed."""
    received, passed = int(10 * t), int(10 * (t if routed else min(t, at)))
    bindings = (OTHER,) if t >= at else (OTHER, *lost)
    here = Exchange(
        vhost="/", name="shop", type="direct", stats=stats(publish_in=received, publish_out=passed), **exchange
    )
    return {
        "bindings": Bindings(listed=bindings),
        "exchanges": (here,),
        "queues": tuple(queue(name) for name in queues),
    }


def missed(frame, until=60):
    """Findings of this rule, consequences included."""
    verdict = look(film(frame, until=until))
    known = [*verdict.findings, *(each for finding in verdict.findings for each in finding.consequences)]
    return [finding for finding in known if finding.rule == "binding-missing"]


def test_a_removed_binding_is_reported_if_messages_reach_nobody():
    """With the command that binds it again."""
    (finding,) = missed(unbound)

    assert ("warning", "exchange", "shop") == (finding.severity, finding.subject.kind, finding.subject.name)
    assert [
        {"source": "shop", "destination_type": "queue", "destination": "orders", "routing_key": "order"}
    ] == finding.facts["removed"]
    assert finding.facts["destination_exists"]
    command = text(finding).steps[0].command or ""
    assert """-d '{"routing_key": "order"}' http""" in command
    assert command.endswith("/api/bindings/%2F/e/shop/q/orders")


def test_it_is_remembered_for_minutes():
    """Longer than the readings of clients."""
    assert missed(unbound, until=300)


def test_a_queue_that_was_deleted_with_its_binding_is_reported_as_such():
    """There is nothing to bind."""
    (finding,) = missed(lambda t: unbound(t, queues=("audit",)))

    assert not finding.facts["destination_exists"]


def test_a_queue_that_the_broker_named_is_not_declared_again():
    """It was one client's; the client makes a new one."""
    own = Binding(
        vhost="/", source="shop", destination="amq.gen-J1", destination_type="queue", routing_key="amq.gen-J1"
    )
    (finding,) = missed(lambda t: unbound(t, lost=(own,), queues=("audit",)))

    assert finding.facts["for_one_client"]
    assert "Start the application" in text(finding).steps[0].text
    assert not any("amq.gen-J1" in (step.command or "") for step in text(finding).steps)


@pytest.mark.parametrize(
    "frame",
    [
        lambda t: unbound(t, routed=True),
        lambda t: unbound(t, at=1000.0),
        lambda t: unbound(t, lost=()),
        lambda t: unbound(t, arguments={"alternate-exchange": "rest"}),
        lambda t: {
            **unbound(t, policy="rest"),
            "policies": (Policy(vhost="/", name="rest", definition={"alternate-exchange": "rest"}),),
        },
        lambda t: {**unbound(t), "bindings": Bindings(listed=None)},
    ],
    ids=[
        "routed elsewhere",
        "nothing removed",
        "was never bound",
        "alternate exchange",
        "the same by policy",
        "not listed",
    ],
)
def test_other_exchanges_are_not_reported(frame):
    """A removed binding alone is no finding."""
    assert [] == missed(frame)


def test_a_loss_that_is_over_is_not_reported():
    """Bound again: nothing is lost between the last two readings."""

    def frame(t):
        again = t >= 60
        parts = unbound(min(t, 60))
        more = int(10 * (t - 60)) if again else 0
        here = parts["exchanges"][0]
        gone = stats(publish_in=here.stats.publish_in + more, publish_out=here.stats.publish_out + more)
        return {**parts, "exchanges": (Exchange(vhost="/", name="shop", type="direct", stats=gone),)}

    assert [] == missed(frame, until=120)


def test_a_headers_exchange_is_not_bound_by_a_routing_key():
    """A binding without arguments would get every message."""

    def frame(t):
        made = unbound(t)
        (here,) = made["exchanges"]
        return {**made, "exchanges": (replace(here, type="headers"),)}

    (finding,) = missed(frame)
    steps = text(finding).steps

    assert "arguments" in steps[0].text
    assert not any("/api/bindings/" in (step.command or "") for step in steps)


@pytest.mark.parametrize(("until", "severity"), [(60, "info"), (100, "warning")])
def test_a_binding_that_left_with_a_queue_of_a_client_may_come_back(until, severity):
    """A consumer that restarts declares its auto-delete queue again."""

    def frame(t):
        made = unbound(t, queues=("audit",))
        own = (queue("orders", auto_delete=True),) if t < 30 else ()
        return {**made, "queues": (*made["queues"], *own)}

    (finding,) = missed(frame, until=until)

    assert severity == finding.severity
    assert (severity == "info") == ("a warning after 60 s" in text(finding).summary)


def chained(t, *, levels=1, dropped_before=0.0):
    """Messages of one exchange go through others to a queue, until its binding is replaced by one of another key."""
    names = ["ingress", *(f"domain.{number}" for number in range(levels))]
    chain = tuple(
        Binding(vhost="telco", source=above, destination=below, destination_type="exchange", routing_key="cdr.#")
        for above, below in pairwise(names)
    )
    key = "cdr.*" if t < 30 else "cdr.v2.*"
    last = Binding(vhost="telco", source=names[-1], destination="rating", destination_type="queue", routing_key=key)
    routed = int(8 * min(t, 30) - dropped_before * min(t, 30))
    counters = {"ingress": stats(publish_in=int(8 * t), publish_out=routed)}
    return {
        "bindings": Bindings(listed=(*chain, last)),
        "exchanges": tuple(
            Exchange(vhost="telco", name=name, type="topic", stats=counters.get(name, stats())) for name in names
        ),
        "queues": (queue("rating", vhost="telco"),),
    }


@pytest.mark.parametrize("levels", [1, 3])
def test_a_binding_that_was_removed_behind_other_exchanges_is_named_where_messages_come_in(levels):
    """Only that exchange counts them; the command binds the queue to the exchange that lost the binding."""
    (finding,) = missed(lambda t: chained(t, levels=levels))
    last = f"domain.{levels - 1}"

    assert ("ingress", last) == (finding.subject.name, finding.facts["passes_to"])
    assert "cdr.*" in text(finding).cause
    assert f"exchange '{last}', to which it passes them, lost 1 binding" in text(finding).summary
    assert f"/e/{last}/q/rating" in (text(finding).steps[0].command or "")


@pytest.mark.parametrize("levels", [0, 1])
def test_an_exchange_that_dropped_as_much_before_did_not_lose_it_by_the_binding(levels):
    """Its events had no subscriber anyway."""
    assert [] == missed(lambda t: chained(t, levels=levels, dropped_before=7.0))


SIBLING = Binding(vhost="/", source="shipment", destination="audit.all", destination_type="queue", routing_key="#")
CUT = Binding(vhost="/", source="shipment", destination="invoice.create", destination_type="queue", routing_key="done")


def cut_off(t, *, at=40.0, rate=5.0, consumers=1, instead=(), pauses=False, declared=0.0):
    """All messages go to two queues until the binding of one is removed; the other one gets them still."""
    here, goes_on = int(rate * max(0.0, min(t, at) - declared)), int(rate * (min(t, at) if pauses else t))
    total = stats(publish_in=goes_on, publish_out=goes_on + here)
    there = (queue("invoice.create", consumers=consumers, stats=stats(publish=here)),) if t >= declared else ()
    return {
        "bindings": Bindings(listed=(SIBLING, *((CUT,) if t < at else instead))),
        "exchanges": (Exchange(vhost="/", name="shipment", type="topic", stats=total),),
        "queues": (*there, queue("audit.all", stats=stats(publish=goes_on)), queue("invoice.v2")),
    }


@pytest.mark.parametrize(("until", "severity"), [(80, "info"), (110, "warning")])
@pytest.mark.parametrize("fields", [{}, {"rate": 0.5}, {"rate": 200.0}, {"declared": 20.0}])
def test_a_queue_that_lost_its_binding_while_others_get_the_messages_is_cut_off(until, severity, fields):
    """Nothing is dropped, so only its inflow shows it."""
    (finding,) = missed(lambda t: cut_off(t, **fields), until=until)

    assert (severity, "queue", "invoice.create") == (finding.severity, finding.subject.kind, finding.subject.name)
    assert "gets no messages since its binding to exchange 'shipment' was removed" in text(finding).summary
    assert "/e/shipment/q/invoice.create" in (text(finding).steps[0].command or "")


@pytest.mark.parametrize(
    "fields",
    [
        {"consumers": 0},
        {"pauses": True},
        {"instead": (replace(CUT, routing_key="done.v2"),)},
        {"instead": (replace(CUT, destination="invoice.v2"),)},
        {"rate": 0.0},
    ],
    ids=[
        "nobody consumes",
        "publishers pause",
        "bound with another key",
        "another queue has its key",
        "it got nothing",
    ],
)
def test_a_binding_that_was_removed_for_a_reason_is_not_reported(fields):
    """A queue that is given up, or replaced."""
    assert [] == missed(lambda t: cut_off(t, **fields), until=110)


def bound(source, destination, kind="queue", key="t"):
    """A binding of the exchanges below."""
    return Binding(vhost="/", source=source, destination=destination, destination_type=kind, routing_key=key)


TAP = bound("in", "tap", key="")
HOP = bound("in", "mid", "exchange", key="")
LEGS = (bound("mid", "risk"), bound("mid", "book"))


def recreated(
    t,
    *,
    at=40.0,
    rate=5.0,
    gone=(HOP, *LEGS),
    back=(),
    kind=("direct", "topic"),
    pauses=False,
    consumers=1,
    tapped=True,
):
    """An exchange behind another one loses bindings; the first one feeds another queue still.

    Args:
        t: second of the film.
        at: second at which the bindings go.
        rate: messages a second.
        gone: what goes.
        back: what is bound instead.
        kind: type of the exchange in the middle, before and after.
        pauses: whether the publisher stops, too.
        consumers: of the queues behind.
        tapped: whether another queue gets the messages still.
    """
    cut = {each.destination for each in gone} & {"risk", "book"} if HOP not in gone else {"risk", "book"}
    n, until = int(rate * (min(t, at) if pauses else t)), int(rate * min(t, at))
    there = {name: until if name in cut else n for name in ("risk", "book")}
    listed = ((TAP,) if tapped else ()) + ((HOP, *LEGS) if t < at else (*({HOP, *LEGS} - set(gone)), *back))
    routed = sum(there.values()) + (n if tapped else 0)
    return {
        "bindings": Bindings(listed=listed),
        "exchanges": (
            Exchange(vhost="/", name="in", type="fanout", stats=stats(publish_in=n, publish_out=routed)),
            Exchange(vhost="/", name="mid", type=kind[t >= at]),
        ),
        "queues": (
            queue("tap", stats=stats(publish=n)),
            queue("mid.v2", consumers=1),
            *(queue(name, consumers=consumers, stats=stats(publish=number)) for name, number in there.items()),
        ),
    }


@pytest.mark.parametrize("fields", [{}, {"rate": 0.5}, {"rate": 150.0}, {"kind": ("topic", "topic")}])
def test_an_exchange_that_was_declared_again_cuts_off_all_queues_behind_it(fields):
    """One finding, with each binding that is missing."""
    (finding,) = missed(lambda t: recreated(t, **fields), until=110)

    assert ("warning", "exchange", "mid") == (finding.severity, finding.subject.kind, finding.subject.name)
    assert ["book", "risk"] == finding.facts["starved_queues"]
    commands = [step.command or "" for step in text(finding).steps]
    assert all(any(f"/e/{end}" in each for each in commands) for end in ("in/e/mid", "mid/q/risk", "mid/q/book"))
    assert ("kind" not in fields) == ("(direct before, topic now)" in text(finding).cause)


@pytest.mark.parametrize(
    ("fields", "subject", "number"),
    [
        ({"gone": (HOP,)}, "in", 1),
        ({"gone": (LEGS[0],)}, "risk", 1),
        # The application declared its queues and their bindings again, and nobody the one between the exchanges.
        ({"back": tuple(replace(each, routing_key="t.#") for each in LEGS)}, "mid", 3),
    ],
    ids=["between exchanges", "the last one", "bound again to an exchange that gets nothing"],
)
def test_a_single_missing_link_is_named(fields, subject, number):
    """Wherever it was on the way."""
    (finding,) = missed(lambda t: recreated(t, **fields), until=110)

    assert (subject, number) == (finding.subject.name, len(finding.facts["removed"]))
    assert text(finding).summary


@pytest.mark.parametrize(
    "fields",
    [
        {"pauses": True},
        {"consumers": 0},
        {"back": (bound("in", "mid.v2", "queue", key=""),)},
        {"gone": (HOP,), "back": (bound("in", "risk"), bound("in", "book"))},
    ],
    ids=["the publisher stopped", "nobody consumes", "another queue takes over", "bound directly"],
)
def test_ways_that_were_changed_on_purpose_are_not_reported(fields):
    """The messages go elsewhere, or there are none."""
    assert [] == missed(lambda t: recreated(t, **fields), until=110)


def test_an_exchange_that_was_declared_again_is_named_where_nothing_else_gets_the_messages():
    """They are routed to nobody then, where they come in."""
    (finding,) = missed(lambda t: recreated(t, tapped=False), until=110)

    assert ("in", 3) == (finding.subject.name, len(finding.facts["removed"]))
    assert finding.facts["dropped"]
    assert "(direct before, topic now)" in text(finding).cause
