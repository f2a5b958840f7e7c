from dataclasses import replace

import pytest

from ackscope.topology import Feature, Limit, Policy
from tests.unit.diagnosis.clients.loops import churning, loop, reconnecting, steady, turns
from tests.unit.diagnosis.pictures import film, found, look, queue, stats, text

LOCATOR = Feature(name="queue_master_locator", deprecated=True, state="denied", stage="denied_by_default")
TRANSIENT = Feature(name="transient_nonexcl_queues", deprecated=True, state="denied", stage="permitted_by_default")
ALLOWED = Feature(name="transient_nonexcl_queues", deprecated=True, state="permitted", stage="permitted_by_default")
QOS = Feature(name="global_qos", deprecated=True, state="denied", stage="denied_by_default")


def refused(t, *, features=(LOCATOR,), declares=1, channels=1, every=1.0, listed=True, counters=None, **fields):
    """A client whose connection ends at each declare."""
    shown = reconnecting(t, every=every)
    done = turns(t, 1 / every, 0)
    known = counters or stats(deliver_get=int(10 * t), ack=int(10 * t))
    overview = churning(t, channels=channels * done, connections=done, declares=declares * done, stats=known)
    there = shown["connections"] if listed else shown["connections"][:1]
    return {**shown, "overview": overview, "connections": there, "features": features, **fields}


def starving(t, *, alone=(0.0, 1e9), **fields):
    """The same client beside a queue to which somebody publishes, and which nobody consumes between two moments."""
    left, back = alone
    number = int(4 * t)
    waiting = int(4 * (t - left)) if left <= t < back else 0
    counters = stats(publish=number, deliver=number - waiting, ack=number - waiting)
    render = queue("render", consumers=int(not left <= t < back), messages_ready=waiting, stats=counters)
    return refused(t, queues=(render,), **fields)


def of_feature(verdict):
    """The finding of this rule; None without one."""
    return next((each for each in verdict.findings if each.rule == "feature-denied"), None)


def test_a_feature_that_the_operator_denied_is_a_warning_at_once():
    """It names the feature and the client; the churn is a consequence."""
    verdict = look(film(lambda t: refused(t, features=(TRANSIENT,)), until=20))
    finding = of_feature(verdict)

    assert [("feature-denied", "warning", "shop")] == found(verdict)
    assert ["connection-churn"] == [each.rule for each in finding.consequences]
    assert (["transient_nonexcl_queues"], ["billing"]) == (
        finding.facts["features"], [each["client"] for each in finding.facts["clients"]],
    )  # fmt: skip
    assert "transient_nonexcl_queues" in text(finding).summary


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("name", ["render", "orders.v2", "a"])
def test_a_default_denial_does_not_explain_a_queue_that_exists_and_has_no_consumer(listed, name):
    """Probably the client declares it with other properties; the denied feature is another possible cause."""

    def frame(t):
        made = starving(t, listed=listed)
        return {**made, "queues": tuple(replace(each, name=name) for each in made["queues"])}

    (finding,) = look(film(frame, until=90)).findings

    assert ("connection-churn", "warning") == (finding.rule, finding.severity)
    assert ["no-consumer"] == [each.rule for each in finding.consequences]
    assert "406" in text(finding).cause
    assert "queue_master_locator" in text(finding).cause


def test_a_feature_that_queues_still_use_explains_the_queue_without_a_consumer():
    """An upgraded broker: the queue was declared with it."""

    def frame(t):
        made = starving(t)
        old = {"x-queue-master-locator": "min-masters"}
        return {**made, "queues": tuple(replace(each, arguments=old) for each in made["queues"])}

    finding = of_feature(look(film(frame, until=60)))

    assert ("warning", ["render"]) == (finding.severity, finding.facts["starved"])
    assert ["connection-churn", "no-consumer"] == [each.rule for each in finding.consequences]
    assert "grows without a consumer" in text(finding).summary


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize(
    "frame",
    [
        refused,
        lambda t, **fields: starving(t, alone=(0, 40), **fields),
        lambda t, **fields: starving(t, alone=(60, 75), **fields),
        lambda t, **fields: starving(t, alone=(60, 1e9), **fields),
    ],
    ids=["no queue waits", "the consumer is back", "a deployment", "it left long after the loop began"],
)
def test_a_default_denial_alone_stays_a_possibility(frame, listed):
    """A health check declares a queue that exists, and closes in good order: no counter tells it from a refusal."""
    finding = of_feature(look(film(lambda t: frame(t, listed=listed), until=120)))

    assert ("info", "likely") == (finding.severity, finding.certainty)
    said = text(finding).summary
    assert "Perhaps the broker refuses it" in said
    assert "health check" in said
    assert "lose" not in said


def test_a_possibility_does_not_become_a_warning_by_a_fast_loop():
    """That warning is about the loop alone."""
    verdict = look(film(lambda t: refused(t, every=0.05, listed=False), until=400))

    assert {("feature-denied", "info", "shop"), ("connection-churn", "warning", "shop")} == set(found(verdict))


def test_queues_for_one_reply_each_are_not_declared_in_vain():
    """A client that stays connected creates and deletes them, while a health check only connects and disconnects."""

    def frame(t):
        there = refused(t, declares=0, every=1.43, listed=False)
        replies = {"queue_declared": 40 + int(6 * t), "queue_created": int(6 * t), "queue_deleted": int(6 * t)}
        churn = {**there["overview"].churn, **replies}
        return {**there, "overview": replace(there["overview"], churn=churn)}

    assert None is of_feature(look(film(frame, until=100)))


@pytest.mark.parametrize(
    "parts",
    [
        {"queues": (queue(arguments={"x-queue-master-locator": "min-masters"}),)},
        {"policies": (Policy(vhost="/", name="old", pattern=".*", definition={"queue-master-locator": "random"}),)},
    ],
    ids=["a queue", "a policy"],
)
def test_what_still_uses_the_feature_confirms_it(parts):
    """A broker that was upgraded."""
    assert "warning" == of_feature(look(film(lambda t: refused(t, **parts), until=20))).severity


def test_connections_too_brief_to_be_listed_are_reported():
    """Their number is known."""
    finding = of_feature(look(film(lambda t: refused(t, listed=False), until=60)))

    assert (0, pytest.approx(1.0, rel=0.1)) == (finding.facts["client_count"], finding.facts["cycle_rate"])
    assert ["connection-churn"] == [each.rule for each in finding.consequences]


@pytest.mark.parametrize(
    "frame",
    [
        lambda t: refused(t, declares=0),
        lambda t: refused(t, channels=0),
        lambda t: refused(t, features=(ALLOWED,)),
        lambda t: refused(t, features=(QOS,)),
        lambda t: refused(t, counters=stats(deliver_get=int(10 * t), ack=int(10 * t), publish=int(t))),
    ],
    ids=["it only reconnects", "it opens no channel", "permitted", "refuses no declare", "it declares and publishes"],
)
def test_a_client_whose_loop_does_not_fit_is_not_named(frame):
    """Its churn is a finding of its own."""
    assert [("connection-churn", "info", "billing")] == found(look(film(frame, until=60)))


def test_declares_of_a_client_that_stays_connected_are_not_those_of_others():
    """A loop of channels accounts for all declares, so connections that come and go declare nothing."""

    def frame(t):
        there, consuming = steady(t)
        done = turns(t, 2.0, 0)
        brief = turns(t, 0.5, 0)
        overview = churning(t, channels=done + brief, connections=brief, declares=done, stats=stats())
        refused_channels = loop(t, rate=2.0, sent=35 + 153, received=70)
        return {
            "overview": overview, "connections": (there, refused_channels), "channels": (consuming,),
            "features": (TRANSIENT,),
        }  # fmt: skip

    assert "feature-denied" not in {rule for rule, _, _ in found(look(film(frame, until=60)))}


def test_a_limit_of_queues_that_is_used_up_explains_it_first():
    """Its refused declares look the same."""
    limit = Limit(scope="vhost", subject="/", name="max-queues", value=1)
    verdict = look(film(lambda t: refused(t, limits=(limit,), queues=(queue(),)), until=60))

    assert [("queue-limit-reached", "warning", "/")] == found(verdict)


def test_a_broker_that_does_not_report_what_it_denies_is_inconclusive():
    """Before 4.1."""
    feature = Feature(name="transient_nonexcl_queues", deprecated=True, stage="permitted_by_default")
    verdict = look(film(lambda t: refused(t, features=(feature,)), until=60))

    assert None is of_feature(verdict)
    assert ("feature-denied", "state_not_reported") in [(each.rule, each.reason) for each in verdict.inconclusive]
