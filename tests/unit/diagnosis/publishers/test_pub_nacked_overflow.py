import pytest

from ackscope.snapshot import Part
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import channel, connection, film, look, queue, stats, told
from tests.unit.diagnosis.publishers.films import whole

RULE = "pub-nacked-overflow"
PUBLISHER = "10.0.0.9:50002 -> 10.0.0.1:5672"
LIMITED = {"x-max-length": 10, "x-overflow": "reject-publish"}


def found(verdict):
    """Rule, severity and queue of each finding of this rule; what follows from it, or causes it, is others' matter."""
    return [(each.rule, each.severity.value, each.subject.name) for each in whole(verdict, RULE)]


def only(verdict):
    """The one finding of this rule."""
    (finding,) = whole(verdict, RULE)
    return finding


def full(t, *, ready=10, rate=8.0, acked=0.0, arguments=None, **fields):
    """A queue at its limit of 10 messages, to which so many a second are published, of which some are acknowledged."""
    counters = stats(publish=int(10 + rate * t), ack=int(acked * t))
    return queue(messages_ready=ready, messages=ready, arguments=arguments or LIMITED, stats=counters, **fields)


def publisher(t, *, rate=8.0, confirmed=0.0, confirm=True, unconfirmed=1, **fields):
    """A channel that publishes so many a second, of which some are confirmed."""
    counters = stats(publish=int(10 + rate * t), **({"confirm": int(10 + confirmed * t)} if confirm else {}))
    return channel(
        f"{PUBLISHER} (1)",
        confirm=confirm,
        consumer_count=0,
        messages_unconfirmed=unconfirmed,
        stats=counters,
        **fields,
    )


def picture(t, *, to=None, by=None):
    """The full queue, its publisher, and the application behind it."""
    return {
        "queues": (full(t, **(to or {})),),
        "channels": (publisher(t, **(by or {})),),
        "connections": (connection(PUBLISHER, client_name="shop"),),
    }


def test_a_full_queue_that_nacks_is_critical_and_names_the_publisher():
    """What is lost or handed back, how many, by whom it was sent."""
    finding = only(look(film(picture, until=15)))

    assert ("pub-nacked-overflow", "critical", "orders") == (finding.rule, finding.severity, finding.subject.name)
    assert "full (10 of 10 messages)" in finding.summary
    assert "80 messages in 10 s; nacked: 'shop'" in finding.summary


def test_two_readings_are_enough():
    """One look of eight seconds finds it."""
    window = film(picture, until=8, every=8)

    assert [("pub-nacked-overflow", "critical", "orders")] == found(look(window, thresholds=Thresholds.one_shot()))


def test_publishers_without_confirms_lose_messages_without_a_word():
    """No channel shows a nack, but the queue takes nothing of what is published to it."""
    window = film(lambda t: picture(t, by={"confirm": False}), until=15)

    finding = only(look(window))

    assert "critical" == finding.severity
    assert "lost without a word" in finding.summary


def test_a_full_queue_to_which_nobody_publishes_is_a_fact_only():
    """Nothing is refused, as nothing is sent."""
    window = film(lambda t: picture(t, to={"rate": 0.0}, by={"rate": 0.0}), until=60)

    assert [("pub-nacked-overflow", "info", "orders")] == found(look(window))


def test_a_limit_in_bytes_counts_like_one_in_messages():
    """Full is where the next message of average size does not fit."""
    limits = {"x-max-length-bytes": 1000, "x-overflow": "reject-publish"}
    window = film(lambda t: picture(t, to={"arguments": limits, "message_bytes_ready": 950}), until=15)

    assert "950 B of 1000 B" in only(look(window)).summary


def test_a_limit_by_policy_can_be_raised_at_once():
    """The command is exact: pattern, definition, and the policy that it would replace."""
    policy = {"max-length": 10, "overflow": "reject-publish"}
    limited = {"arguments": {"x-queue-type": "classic"}, "effective_policy": policy, "policy": "small"}
    window = film(lambda t: picture(t, to=limited), until=15)

    text = told(only(look(window)))

    assert """set_policy -p / more-room '^orders$' '{"max-length": 20, "overflow": "reject-publish"}'""" in text
    assert "replaces policy 'small'" in text


@pytest.mark.parametrize(
    "change",
    [
        {"arguments": {"x-max-length": 10}},
        {"arguments": {"x-max-length": 10, "x-overflow": "drop-head"}},
        {"arguments": {"x-overflow": "reject-publish"}},
        {"ready": 3},
    ],
    ids=["drops the oldest by default", "drops the oldest", "no limit", "not full"],
)
def test_other_queues_are_left_alone(change):
    """Only a queue that refuses when it is full, and is."""
    assert [] == found(look(film(lambda t: picture(t, to=change), until=60)))


def test_a_queue_that_drains_as_fast_as_it_fills_is_left_alone():
    """It touches its limit, but everything published was taken."""

    def frame(t):
        ready = 10 if t % 10 else 9
        return picture(t, to={"ready": ready, "acked": 8.0}, by={"confirmed": 8.0})

    verdicts = [found(look(film(frame, until=until))) for until in range(5, 60, 5)]

    assert "critical" not in [severity for verdict in verdicts for _, severity, _ in verdict]


def test_a_refusal_or_two_of_a_busy_queue_are_within_what_the_figures_lag():
    """Published and acknowledged are current, the number of messages is seconds old."""
    busy = film(lambda t: picture(t, to={"rate": 100.0, "acked": 98.0}, by={"rate": 0.0}), until=15)

    finding = only(look(busy))

    assert "info" == finding.severity
    assert "no refusal was seen" in finding.summary


def test_messages_that_expire_are_not_taken_for_refused():
    """With a message TTL the balance of the queue proves nothing; then the channels decide."""
    ttl = {**LIMITED, "x-message-ttl": 1000}
    confirmed = film(lambda t: picture(t, to={"arguments": ttl}, by={"confirmed": 8.0}), until=15)
    nacked = film(lambda t: picture(t, to={"arguments": ttl}), until=15)

    assert [("pub-nacked-overflow", "info", "orders")] == found(look(confirmed))
    assert [("pub-nacked-overflow", "critical", "orders")] == found(look(nacked))


def test_messages_in_flight_are_not_taken_for_nacked():
    """Published and not yet confirmed is open, however large the number."""
    ttl = {**LIMITED, "x-message-ttl": 1000}
    flight = {"rate": 8.0, "confirmed": 0.0, "unconfirmed": 500}
    window = film(lambda t: picture(t, to={"arguments": ttl}, by=flight), until=15)

    assert [("pub-nacked-overflow", "info", "orders")] == found(look(window))


def test_a_few_in_flight_are_no_suspect():
    """The broker's number of open publishes is seconds old: one or two that it misses are not nacks."""

    def frame(t):
        late = picture(t, to={"rate": 8.0}, by={"confirmed": 8.0, "unconfirmed": 0})
        ahead = publisher(t, confirmed=7.8, unconfirmed=0)
        return {**late, "channels": (ahead,)}

    assert "'shop'" not in told(only(look(film(frame, until=15))))


def test_a_channel_that_began_meanwhile_counts_from_zero():
    """A publisher that opens a channel for each batch is found all the same."""

    def frame(t):
        late = picture(t)
        return {**late, "channels": late["channels"] if t >= 10 else ()}

    assert "nacked: 'shop'" in only(look(film(frame, until=15))).summary


def test_channels_of_another_vhost_are_no_suspects():
    """They cannot publish to this queue."""
    window = film(lambda t: picture(t, by={"vhost": "other"}), until=15)

    assert "'shop'" not in told(only(look(window)))


def test_without_channels_the_queue_is_told_and_its_publishers_are_not():
    """What is seen is said, and what is not, too."""

    def frame(t):
        return {**picture(t), "channels": Part(error="timed out")}

    verdict = look(film(frame, until=15))

    assert [("pub-nacked-overflow", "critical", "orders")] == found(verdict)
    assert ["publishers to queue 'orders' cannot be named"] == [
        gap.because.partition("so the ")[2] for gap in verdict.inconclusive if gap.rule == "pub-nacked-overflow"
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"consumers": 0}, "Nobody consumes from it."),
        ({"consumers": 2}, "Nothing is acknowledged by its 2 consumers"),
        ({"consumers": 2, "acked": 0.5}, "Its consumers acknowledge 0.5 a second"),
    ],
    ids=["nobody", "stuck", "slow"],
)
def test_the_cause_says_why_it_is_full(change, words):
    """That is where the remedy starts."""
    assert words in only(look(film(lambda t: picture(t, to=change), until=20))).cause


def draining(t, name="orders"):
    """A queue that was full and now has three quarters of its limit."""
    ready = 10 if t < 20 else 7.5
    limits = {"x-max-length": 100, "x-overflow": "reject-publish"}
    counters = stats(publish=int(100 + 8 * t), ack=10)
    full = int(10 * ready)
    return queue(name, messages_ready=full, messages=full, arguments=limits, stats=counters)


def test_relief_may_differ_by_queue():
    """A quorum queue resumes below 80 % of its limit; settings may say otherwise for one of them."""
    thresholds = Thresholds.model_validate(
        {"overrides": [{"queues": "^batch$", "values": {"publishers": {"overflow_relief": 0.5}}}]}
    )

    def frame(t):
        return {"queues": (draining(t), draining(t, "batch"))}

    assert ["batch"] == [name for _, _, name in found(look(film(frame, until=25), thresholds=thresholds))]
