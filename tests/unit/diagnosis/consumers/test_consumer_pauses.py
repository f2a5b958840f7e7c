import pytest

from tests.unit.diagnosis.cluster.scenes import finding_of
from tests.unit.diagnosis.consumers.results import ever
from tests.unit.diagnosis.pictures import channel, connection, consumer, film, full_text, look, queue, stats, text

RULE = "consumer-pauses"
NAMES = ("10.0.0.7:50001 -> 10.0.0.1:5672",)


def worked(t, phases):
    """Messages that a consumer settles until a second, by phases of (seconds, messages per second), over and over."""
    period, total = sum(seconds for seconds, _ in phases), 0.0
    whole, rest = divmod(t, period)
    total = whole * sum(seconds * rate for seconds, rate in phases)
    for seconds, rate in phases:
        total += min(rest, seconds) * rate
        rest = max(0.0, rest - seconds)
    return total


def load(phases, *, comes=6.0, prefetch=15, batch=1, start=0.0, of=None, more=None, auto=False):
    """A film of a queue whose consumers work in phases, and settle in batches; it never becomes empty of work."""

    def frame(t):
        settled = int(worked(t + start, phases)) // batch * batch
        arrived = 1000 + int(comes * (t + start))
        counters = {"deliver_no_ack": settled} if auto else {"ack": settled, "deliver": settled + prefetch}
        held = 0 if auto else prefetch
        ready = max(0, arrived - settled - held)
        total = stats(publish=arrived, deliver_get=settled + held, **counters, **(more(t) if more else {}))
        fields = {"consumers": 1, "messages_ready": ready, "messages_unacked": held, "stats": total, **(of or {})}
        return {
            "queues": (queue(**fields),),
            "consumers": tuple(
                consumer(
                    tag="c",
                    channel_name=f"{name} (1)",
                    connection_name=name,
                    prefetch_count=0 if auto else prefetch,
                    ack_required=not auto,
                )
                for name in NAMES
            ),
            "channels": tuple(channel(f"{name} (1)", messages_unacked=held, stats=stats(**counters)) for name in NAMES),
            "connections": tuple(connection(name, client_name="stock-svc") for name in NAMES),
        }

    return frame


LOCK = ((12, 18.0), (24, 0.0))


def test_consumers_that_stop_again_and_again_are_a_warning_the_third_time():
    """Information the second time; it names the consumer, and how often and how long it stopped."""
    twice = finding_of(look(film(load(LOCK), until=74)), RULE)
    often = finding_of(look(film(load(LOCK), until=109)), RULE)

    assert ("info", "warning") == (twice.severity.value, often.severity.value)
    assert (2, 3, ["stock-svc"]) == (twice.facts["times"], often.facts["times"], often.facts["clients"])
    assert 15 <= often.facts["shortest_seconds"] <= often.facts["longest_seconds"] <= 24
    assert often.facts["most_held"] == 15
    assert "'orders'" in text(often).summary
    assert "stopped 3 times" in text(often).summary


def test_pauses_of_minutes_ago_are_still_known():
    """A window thins its older snapshots; each pause stays for ten minutes."""
    seen = finding_of(look(film(load(((60, 8.0), (30, 0.0)), comes=5.0), until=540)), RULE)

    assert 6 == seen.facts["times"]


def test_a_present_pause_is_one_story_with_the_consumer_that_stands_still():
    """A consumer that has stopped for the third time is no finding of its own."""
    result = look(film(load(LOCK), until=107))

    assert [RULE] == [each.rule for each in result.findings if each.rule in {RULE, "stuck-consumer"}]
    assert finding_of(result, RULE).facts["goes_on"]
    assert "has stopped now, too" in text(finding_of(result, RULE)).summary


def test_automatic_acknowledgement_pauses_as_well():
    """Such a consumer reads nothing from its connection meanwhile."""
    assert "warning" == finding_of(look(film(load(LOCK, auto=True), until=109)), RULE).severity.value


LUMPS = ((5, 10.0), (10, 0.0)), ((5, 40.0), (15, 0.0)), LOCK


@pytest.mark.parametrize("phases", LUMPS)
def test_pauses_of_a_socket_prove_no_handler_that_waits(phases):
    """A slow client with automatic acknowledgement empties its socket in lumps: what the handler does is not known."""
    automatic = finding_of(look(film(load(phases, comes=40.0, auto=True), until=179)), RULE)
    words = full_text(automatic)

    assert automatic.facts["automatic"]
    for claim in ("lock", "remote call", "stopped", "handler works", "Processed", "timeout"):
        assert claim not in words
    assert "the socket of its consumer ('stock-svc') took nothing" in words
    assert "works all the time" in words


def test_pauses_between_acknowledgements_are_those_of_the_handler():
    """A prefetch limits what it is sent, so it stops after what it holds."""
    finding = finding_of(look(film(load(LOCK), until=109)), RULE)

    assert not finding.facts["automatic"]
    assert "a database lock" in full_text(finding)
    assert "socket" not in full_text(finding)


@pytest.mark.parametrize(
    ("phases", "options"),
    [
        (((600, 5.0),), {}),
        (((600, 0.0),), {}),
        (((600, 0.08),), {"prefetch": 1}),
        (((600, 3.0),), {"prefetch": 60, "batch": 60}),
        (((30, 18.0), (6, 0.0)), {}),
        (LOCK, {"of": {"type": "stream"}}),
        (LOCK, {"of": {"messages_ready": 0}}),
        (LOCK, {"of": {"consumers": 0, "messages_unacked": 0}}),
        (LOCK, {"more": lambda t: {"redeliver": int(t // 36) * 15}}),
    ],
    ids=["slow", "stuck", "long jobs", "batches", "short", "stream", "no work", "nobody", "restarts"],
)
def test_what_does_not_pause(phases, options):
    """Each is another finding, or none."""
    results = [look(film(load(phases, **options), until=until)) for until in (60, 109, 300)]

    assert RULE not in ever(results)


def test_work_between_pauses_must_exceed_what_is_held():
    """With a prefetch of 200, 216 messages between two pauses may be one batch."""
    assert RULE not in ever([look(film(load(LOCK, prefetch=200), until=109))])


@pytest.mark.parametrize("auto", [True, False])
def test_a_client_that_does_not_read_its_socket_is_the_cause(auto):
    """It takes a burst whenever it reads; the pauses are its consequence, not a second finding."""
    base = load(LOCK, auto=auto)

    def frame(t):
        here, sent = base(t), int(1_000_000 * worked(t, LOCK))
        waits = connection(NAMES[0], client_name="stock-svc", send_pend=90_000, send_oct=sent)
        return {**here, "connections": (waits,)}

    (cause,) = [each for each in look(film(frame, until=107)).findings if each.rule == "consumer-tcp-backpressure"]

    assert RULE in {each.rule for each in cause.consequences}


@pytest.mark.parametrize(("batch", "works"), [(32, 8), (32, 12), (10, 13), (200, 17), (40, 34)])
@pytest.mark.parametrize("until", [120, 260, 590])
def test_a_client_that_works_on_one_batch_after_another_does_not_pause(batch, works, until):
    """It holds a batch for as long as it works, and settles it at once; more waits meanwhile."""

    def frame(t):
        rounds = int(t // works)
        settled, arrived = batch * rounds, 500 + int(1.1 * batch / works * t)
        counters = stats(publish=arrived, deliver_get=settled + batch, get=settled + batch, ack=settled)
        return {
            "queues": (
                queue(
                    consumers=batch, messages_ready=arrived - settled - batch, messages_unacked=batch, stats=counters
                ),
            )
        }

    assert RULE not in ever([look(film(frame, until=until - earlier)) for earlier in (0, 5, 10)])


@pytest.mark.parametrize("jitter", [-0.4, 0.0, 0.4])
def test_readings_a_little_early_or_late_show_a_pause_of_two_intervals(jitter):
    """A wait of 16 s is seen for about 10 s or 15 s."""
    frame = load(((10, 16.0), (16, 0.0)), comes=4.0, prefetch=8)

    assert RULE in ever([look(film(frame, until=90, every=5.0 + jitter / 5))])
