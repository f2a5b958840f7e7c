import pytest

from ackscope.topology import Policy
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import film, look, queue, stats, text
from tests.unit.diagnosis.queues.films import flowing, frame, of, one

RULE = "ttl-expiry-loss"
TTL = {"x-message-ttl": 500}


def expiring(t, **fields):
    """A queue with a TTL of 500 ms: 8 messages per second are published, 2 are acknowledged."""
    return flowing(t, **{"acked": 2.0, "ready": 3, "unacked": 1, "arguments": TTL, **fields})


def shot(until, **fields):
    """The result for that queue after this many seconds."""
    return look(film(lambda t: frame(expiring(t, **fields)), until=until))


def test_it_is_information_first_and_a_warning_after_five_minutes():
    """A burst looks the same."""
    assert [] == of(RULE, shot(5))
    assert [("info", "orders")] == of(RULE, shot(20))
    assert [("warning", "orders")] == of(RULE, shot(330))


def test_the_finding_has_the_ttl_and_the_balance():
    """240 of 320 messages expired."""
    facts = one(RULE, shot(40)).facts

    assert (240, 320, 80) == (facts["lost"], facts["published"], facts["consumed"])
    assert (0.5, True, None) == (facts["ttl_seconds"], facts["ttl_is_argument"], facts["dead_letter_exchange"])


def test_two_polls_find_it():
    """As `ackscope diagnose` does."""
    window = film(lambda t: frame(expiring(t)), until=6, every=6)

    assert [("warning", "orders")] == of(RULE, look(window, thresholds=Thresholds.as_if_lasting()))


def test_a_ttl_by_policy_can_be_changed_at_once():
    """Ten times as long, to gain time."""
    by_policy = {"arguments": {}, "effective_policy": {"message-ttl": 500}, "policy": "short"}

    step = text(one(RULE, shot(40, **by_policy))).steps[1]

    assert """'{"message-ttl": 5000}'""" in (step.command or "")
    assert "replaces policy 'short'" in step.text


def test_a_ttl_is_too_short_if_the_consumers_are_idle():
    """More consumers would not help. A time in seconds may have been written as milliseconds."""
    by_policy = {"arguments": {}, "effective_policy": {"message-ttl": 60}, "policy": "retention"}
    finding = one(RULE, shot(90, unacked=0, ready=0, acked=6.0, **by_policy))
    shown = text(finding)

    assert ("critical", True) == (finding.severity, finding.facts["consumers_idle"])
    assert "It comes from policy 'retention', which may apply to other queues as well." in shown.cause
    assert """'{"message-ttl": 60000}'""" in (shown.steps[0].command or "")
    assert not any("start more of them" in step.text for step in shown.steps)


def test_busy_consumers_are_too_slow():
    """They hold messages whenever they are looked at."""
    finding = one(RULE, shot(90))

    assert ("warning", False) == (finding.severity, finding.facts["consumers_idle"])
    assert any("start more of them" in step.text for step in text(finding).steps)


@pytest.mark.parametrize(("ttl", "severity"), [(0, "warning"), (40, "critical"), (95, "critical"), (2000, "warning")])
def test_a_ttl_of_milliseconds_is_a_mistake_also_if_the_consumers_are_busy(ttl, severity):
    """0 means now or never; a consumer that is slow on purpose lets messages live for seconds."""
    assert severity == one(RULE, shot(90, ready=0, arguments={"x-message-ttl": ttl})).severity.value


def test_without_consumers_it_may_hold_what_is_recent_on_purpose():
    """It is information, not an alarm."""
    assert [("info", "orders")] == of(RULE, shot(400, consumers=0, acked=0.0, unacked=0))


@pytest.mark.parametrize("ttl", [0, 50])
def test_a_queue_that_keeps_nothing_and_has_no_consumer_loses_all(ttl):
    """Nobody could look at a message that lives for no time, so it holds none on purpose."""
    fields = {"consumers": 0, "acked": 0.0, "unacked": 0, "ready": 0, "arguments": {"x-message-ttl": ttl}}

    assert [("info", "orders")] == of(RULE, shot(40, **fields))
    assert [("warning", "orders")] == of(RULE, shot(90, **fields))
    assert "it holds nothing" in text(one(RULE, shot(90, **fields))).summary


@pytest.mark.parametrize(
    "fields",
    [
        {"arguments": {}},
        {"acked": 8.0},
        {"acked": 2.0, "rejected": 6.0},
        {"exclusive": True},
        {"auto_delete": True},
        {"consumers": 0, "acked": 0.0, "unacked": 0, "arguments": {**TTL, "x-dead-letter-exchange": "work"}},
        {"arguments": {**TTL, "x-max-length": 3}},
    ],
    ids=["no TTL", "keeps up", "rejected", "private", "auto-delete", "delay queue", "at its length limit"],
)
def test_other_queues_are_not_reported(fields):
    """Each differs in one thing only."""
    assert [] == of(RULE, shot(120, **fields))


DLX = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "failed"}


def left_alone(t, *, ttl=20.0, left=40.0, rate=10.0, arguments=None, name="orders"):
    """A work queue whose consumer left at second `left`; messages then wait and expire after `ttl` seconds."""
    published, acked = int(rate * t), int(rate * min(t, left))
    ready = min(published - acked, int(rate * ttl))
    counters = stats(publish=published, ack=acked, deliver=acked, deliver_get=acked)
    return queue(
        name,
        messages_ready=ready,
        consumers=1 if t <= left else 0,
        stats=counters,
        arguments={"x-message-ttl": 20_000, **DLX} if arguments is None else arguments,
    )


def abandoned(until, *, start=0.0, every=5.0, target=True, thresholds=None, **fields):
    """The result for that queue, with or without the queue that its dead letters go to."""

    def at(t):
        failed = (queue("failed", messages_ready=int(max(0, t - 60) * 10), consumers=0),) if target else ()
        return frame(left_alone(t, **fields), *failed)

    return look(film(at, until=until, start=start, every=every), thresholds=thresholds)


@pytest.mark.parametrize("name", ["orders", "orders.delay", "a.b1", "retry"])
def test_a_work_queue_with_a_dead_letter_exchange_that_lost_its_consumer_is_no_delay_queue(name):
    """Its settings and its name are those of one; it was consumed."""
    verdict = abandoned(110, name=name)

    assert [("warning", name)] == of(RULE, verdict)
    facts = one(RULE, verdict).facts
    assert (True, True, ["failed"], False) == (
        facts["worked"], facts["consumer_left"], facts["targets"], facts["lost_for_good"],
    )  # fmt: skip
    assert 40 <= facts["without_consumer_seconds"] <= 70
    assert [RULE] == [each.rule for each in verdict.findings]


def test_two_polls_see_that_it_was_consumed():
    """By its counters; the consumer left before."""
    verdict = abandoned(127, start=120, every=7, thresholds=Thresholds.as_if_lasting())

    assert [("warning", "orders")] == of(RULE, verdict)
    assert not one(RULE, verdict).facts["consumer_left"]


def test_it_is_critical_if_what_expires_goes_to_no_queue():
    """Then it is lost."""
    assert [("critical", "orders")] == of(RULE, abandoned(150, target=False))
    assert [("critical", "orders")] == of(RULE, abandoned(150, arguments={"x-message-ttl": 20_000}))


def test_messages_may_expire_by_their_own_expiration():
    """The API does not show it: nothing else makes them leave a queue without a consumer and without limits."""
    verdict = abandoned(110, arguments=DLX)

    assert [("warning", "orders")] == of(RULE, verdict)
    assert one(RULE, verdict).facts["ttl_seconds"] is None


def test_a_purge_is_no_expiry():
    """Everything leaves at once."""

    def at(t):
        counters = stats(publish=int(10 * t), ack=100, deliver=100, deliver_get=100)
        return frame(queue(messages_ready=int(10 * (t % 60)), consumers=0, stats=counters))

    assert [] == of(RULE, look(film(at, until=127, start=120, every=7), thresholds=Thresholds.as_if_lasting()))
    assert [] == of(RULE, look(film(at, until=200)))


def test_much_that_expires_is_a_warning_after_a_minute():
    """Six of eight messages; one of twelve after five minutes."""
    assert [("warning", "orders")] == of(RULE, shot(80))
    assert [("info", "orders")] == of(RULE, shot(280, acked=18.4, published=20.0))


def test_telemetry_that_nobody_ever_consumed_is_information_at_most():
    """Its setting drops what is old."""

    def at(t):
        return frame(
            queue(messages_ready=min(int(10 * t), 600), consumers=0, arguments={"x-message-ttl": 60_000},
                  stats=stats(publish=int(10 * t)))
        )  # fmt: skip

    for until in (100, 300, 590):
        verdict = look(film(at, until=until))
        assert {"info"} >= {each.severity.value for each in verdict.findings}


def test_the_first_length_of_a_new_queue_is_that_of_its_first_moment():
    """It was filled with 400 messages at once, and polled; the counters are there before the length."""

    def at(t):
        if t < 20:
            return frame(queue("orders"))
        polled = min(400, int(20 * (t - 16)))
        left = 0 if t < 30 else 400 - polled
        counters = stats(publish=400, get=polled, deliver_get=polled, ack=polled)
        return frame(queue("batch", consumers=0, messages_ready=left, stats=counters), queue("orders"))

    for until in range(20, 61, 10):
        assert [] == of("ttl-expiry-loss", look(film(at, until=until, every=10)))


@pytest.mark.parametrize("late", [0, 1, 2, 4])
def test_a_purge_long_before_the_ttl_is_no_expiry_where_a_counter_is_late(late):
    """The length of the queue is read before the last messages are counted."""

    def at(t):
        published = min(int(8 * t), 240)
        counted = published - (late if t in (30, 35) else 0)
        there = 0 if t >= 40 else published
        return frame(
            queue(messages=there, messages_ready=there, consumers=0, arguments={"x-message-ttl": 900_000},
                  stats=stats(publish=counted))
        )  # fmt: skip

    verdict = look(film(at, until=75))

    assert ([], ["orders"]) == (of(RULE, verdict), [name for _, name in of("queue-purged", verdict)])


def in_step(t, *, clients=5, expiration=3.0, pause=0.4, left=0.0):
    """Clients publish a request each, wait until it expires, and publish the next; nobody consumes since `left`."""
    period = expiration + pause
    number, age = divmod(max(0.0, t - left), period)
    before = int(8 * min(t, left))
    waits = clients if t > left and age < expiration else 0
    published = before + (clients * (int(number) + 1) if t > left else 0)
    counters = stats(publish=published, deliver=before, deliver_get=before, ack=before)
    return queue("rpc.pricing", messages_ready=waits, consumers=0 if t > left else 1, stats=counters)


@pytest.mark.parametrize("clients", [5, 40])
@pytest.mark.parametrize("pause", [0.3, 2.2])
def test_requests_that_come_and_expire_in_step_expire(clients, pause):
    """A reading shows all of them or none; nobody purged the queue."""
    result = look(film(lambda t: frame(in_step(t, clients=clients, pause=pause, left=20.0)), until=100))

    assert [("critical", "rpc.pricing")] == of(RULE, result)
    assert [] == of("queue-purged", result)


def visited(t, *, stays=3.0, every=20.0, ttl=4.0, rate=5.0, last=1e9, **fields):
    """A batch takes all that is there whenever it comes, and messages live for a short time."""
    taken, moment = 0.0, 0.0
    while moment + stays <= min(t, last):
        taken += rate * (min(ttl, moment) + stays)
        moment += every
    present = t < last and t % every < stays
    published = int(rate * t)
    ready = 0 if present else int(rate * min(ttl, t % every))
    counters = stats(publish=published, ack=int(taken), deliver=int(taken), deliver_get=int(taken))
    return queue(
        "orders", messages_ready=ready, consumers=1 if present else 0, stats=counters,
        **{"effective_policy": {"message-ttl": int(ttl * 1000)}, **fields},
    )  # fmt: skip


def test_a_consumer_that_comes_now_and_then_has_not_left():
    """Its visits are too far apart for the TTL."""
    finding = one(RULE, look(film(lambda t: frame(visited(t)), until=178)))

    assert ("critical", True, False) == (finding.severity, finding.facts["visits"], finding.facts["consumer_left"])
    assert "comes only now and then" in text(finding).summary
    assert not any("Start the application" in step.text for step in text(finding).steps)


def test_a_consumer_that_came_and_then_left_for_good_has_left():
    """It was there until second 63."""
    finding = one(RULE, look(film(lambda t: frame(visited(t, every=1e9, stays=63.0, ttl=20.0)), until=178)))

    assert (False, True) == (finding.facts["visits"], finding.facts["consumer_left"])


def test_a_ttl_by_operator_policy_is_changed_by_an_operator_policy():
    """Of two TTLs the shorter one is in force. What the operator sets is not copied into a policy."""
    guard = Policy(vhost="/", name="guard", definition={"message-ttl": 4000, "max-length": 900}, operator=True)
    fields = {
        "policy": "work",
        "operator_policy": "guard",
        "effective_policy": {"message-ttl": 4000, "max-length": 900, "delivery-limit": 5},
    }
    window = film(lambda t: {**frame(visited(t, **fields)), "policies": (guard,)}, until=178)
    shown = text(one(RULE, look(window)))
    commands = [step.command or "" for step in shown.steps]

    assert "comes from operator policy 'guard'" in shown.cause
    assert any(
        "set_operator_policy" in each and """{"max-length": 900, "message-ttl": 40000}""" in each for each in commands
    )
    assert any(
        "rabbitmqctl set_policy" in each and '"delivery-limit": 5' in each and "ttl" not in each for each in commands
    )
