import pytest

from ackscope.topology import Binding, Bindings, Exchange, Policy
from tests.unit.diagnosis.pictures import film, look, queue, stats, told

KEPT = Binding(vhost="/", source="shop", destination="audit", destination_type="queue", routing_key="audit")
LOST = Binding(vhost="/", source="shop", destination="orders", destination_type="queue", routing_key="order")


def unbound(t, *, at=30.0, routed=False, lost=(LOST,), queues=("orders", "audit"), **exchange):
    """Ten messages a second, which reach a queue until its binding goes."""
    taken, passed = int(10 * t), int(10 * (t if routed else min(t, at)))
    there = (KEPT,) if t >= at else (KEPT, *lost)
    here = Exchange(
        vhost="/", name="shop", type="direct", stats=stats(publish_in=taken, publish_out=passed), **exchange
    )
    return {
        "bindings": Bindings(listed=there),
        "exchanges": (here,),
        "queues": tuple(queue(name) for name in queues),
    }


def missed(frame, until=60):
    """What this rule found, be it under another one."""
    verdict = look(film(frame, until=until))
    known = [*verdict.findings, *(each for finding in verdict.findings for each in finding.consequences)]
    return [finding for finding in known if finding.rule == "binding-missing"]


def test_a_binding_that_went_while_messages_reach_nobody_is_told():
    """With the command that binds it again."""
    (finding,) = missed(unbound)

    assert ("warning", "exchange", "shop") == (finding.severity, finding.subject.kind, finding.subject.name)
    assert "queue 'orders' by key 'order'" in told(finding)
    assert "declare binding source=shop destination=orders destination_type=queue routing_key=order" in told(finding)


def test_it_is_remembered_for_minutes():
    """Longer than clients are held."""
    assert missed(unbound, until=300)


def test_a_queue_that_was_deleted_with_its_binding_is_told_so():
    """There is nothing to bind."""
    (finding,) = missed(lambda t: unbound(t, queues=("audit",)))

    assert "what it led to as well" in finding.cause


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
        "others get them",
        "nothing went",
        "was never bound",
        "alternate exchange",
        "the same by policy",
        "not listed",
    ],
)
def test_the_rest_is_quiet(frame):
    """A binding that goes alone is no news."""
    assert [] == missed(frame)


def test_a_loss_that_is_over_is_quiet():
    """Bound again: nothing is lost between the last two readings."""

    def frame(t):
        again = t >= 60
        parts = unbound(min(t, 60))
        more = int(10 * (t - 60)) if again else 0
        here = parts["exchanges"][0]
        gone = stats(publish_in=here.stats.publish_in + more, publish_out=here.stats.publish_out + more)
        return {**parts, "exchanges": (Exchange(vhost="/", name="shop", type="direct", stats=gone),)}

    assert [] == missed(frame, until=120)
