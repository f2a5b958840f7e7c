from dataclasses import replace

import pytest

from tests.unit.diagnosis.consumers.results import ever, found, only, urgent
from tests.unit.diagnosis.pictures import channel, connection, consumer, evidence, film, look, queue, stats, text

OTHER = "10.0.0.8:50002 -> 10.0.0.1:5672"


def hoard(*, held=1500, prefetch=0, rate=0.0, other=0, waiting=0, kind="classic"):
    """Return a film of a consumer with these unacknowledged messages and ack rate, and of another one."""

    def frame(t):
        done = int(rate * t)
        mine = stats(deliver=held + done, ack=done) if done else stats(deliver=held)
        return {
            "queues": (
                queue(
                    type=kind,
                    consumers=2,
                    messages_ready=waiting,
                    messages_unacked=held + other,
                    stats=stats(publish=held + other + waiting + done, deliver=held + other + done, ack=done),
                ),
            ),
            "consumers": (
                consumer(prefetch_count=prefetch),
                consumer(tag="ctag2", channel_name=f"{OTHER} (1)", connection_name=OTHER),
            ),
            "channels": (channel(messages_unacked=held, stats=mine), channel(f"{OTHER} (1)", messages_unacked=other)),
            "connections": (connection(), connection(OTHER, client_name="starved")),
        }

    return frame


def test_a_consumer_that_holds_everything_is_found():
    """Information at first, a warning after a minute; the finding names the consumers that get nothing."""
    assert [("prefetch-hoarder", "info", "orders")] == found(look(film(hoard(), until=15)))

    finding = only(look(film(hoard(), until=70)))

    assert ("prefetch-hoarder", "warning", "orders") == (finding.rule, finding.severity, finding.subject.name)
    assert ("billing", 1500, 1) == (
        finding.facts["hoarder"]["client"],
        finding.facts["unacked"],
        finding.facts["starving_consumers"],
    )
    assert "starved" == evidence(finding, "starving").facts["held_by"]["client"]
    assert any("X-Reason: holds the whole queue" in (step.command or "") for step in text(finding).steps)


@pytest.mark.parametrize(("shared", "listed"), [(0, True), (12, False), (None, True)])
def test_consumers_that_share_the_prefetch_of_their_channel_have_a_limit(shared, listed):
    """With basic.qos and global=true the limit is that of the channel, also if it consumes from two queues."""

    def frame(t):
        done = int(7 * t)
        counters = stats(publish=done + 5, deliver=done + 5, ack=done)
        names = ("docs.scan", "docs.ocr")
        return {
            "queues": tuple(queue(name, messages_unacked=5, stats=counters) for name in names),
            "consumers": tuple(consumer(name, tag=name, prefetch_count=0) for name in names),
            "channels": (channel(messages_unacked=10, global_prefetch_count=shared, consumer_count=2, stats=counters),),
            "connections": (connection(),),
        }

    window = film(lambda t: {**frame(t)}, until=15)

    assert listed == ("prefetch-hoarder" in [each.rule for each in look(window).findings])


def test_a_hoarder_that_the_broker_prefers_must_not_just_be_restarted():
    """With the highest x-priority it would get everything again."""

    def frame(t):
        picture = hoard()(t)
        first, second = picture["consumers"]
        return {**picture, "consumers": (replace(first, priority=7), second)}

    preferred, plain = (only(look(film(each, until=70))) for each in (frame, hoard()))

    assert "x-priority 7" in text(preferred).cause
    assert "x-priority" not in text(plain).cause
    steps = [step.text for step in text(preferred).steps]
    assert any("First set a lower prefetch" in step for step in steps)
    assert not any("Start the other consumers first" in step for step in steps)


def test_that_it_acknowledges_none_is_a_consequence():
    """There is one finding, about the hoarder."""
    results = [look(film(hoard(), until=until)) for until in (30, 90, 300)]

    assert {"prefetch-hoarder"} == {each.rule for result in results for each in result.findings}
    assert "stuck-consumer" in ever(results)


def test_a_hoarder_that_could_take_more_is_not_stuck():
    """Messages are ready and the broker sends it none, so it does not cause that."""
    results = [look(film(hoard(waiting=5), until=until)) for until in (30, 90, 300)]

    assert {"prefetch-hoarder"} == ever(results)


@pytest.mark.parametrize(
    "frame",
    [hoard(held=900), hoard(prefetch=10), hoard(other=1000), hoard(rate=100.0)],
    ids=["not many", "limited", "shared", "processed in 15 s"],
)
def test_what_is_no_hoarder(frame):
    """It holds no more than its limit, or not alone, or not for long."""
    assert [] == [each for each in urgent(look(film(frame, until=90))) if each[0] == "prefetch-hoarder"]


def test_a_slow_hoarder_is_one_too():
    """It acknowledges ten a second, which is 2.5 min of work."""
    assert [("prefetch-hoarder", "warning", "orders")] == urgent(look(film(hoard(rate=10.0), until=90)))


def test_consumers_without_a_limit_are_listed_once_a_virtual_host():
    """It is information: nothing has happened yet."""

    def frame(t):
        counters = stats(deliver=int(10 * t), ack=int(10 * t))
        return {
            "queues": tuple(queue(f"q{n}", stats=counters, vhost=vhost) for n in range(4) for vhost in ("/", "two")),
            "consumers": tuple(
                consumer(f"q{n}", tag=f"t{n}", vhost=vhost, prefetch_count=0)
                for n in range(4)
                for vhost in ("/", "two")
            ),
            "channels": (channel(),),
            "connections": (connection(),),
        }

    result = look(film(frame, until=30))

    assert [("prefetch-hoarder", "info", "/"), ("prefetch-hoarder", "info", "two")] == sorted(found(result))
    assert [4, 4] == [
        len(each.facts["unlimited_consumers"]) for each in result.findings if each.rule == "prefetch-hoarder"
    ]


def unequal(*, slow=0.2, quick=10.0, held=30, others=2, other_held=1, prefetch=40):
    """One consumer that acknowledges `slow` messages a second and holds `held`; the others share `quick` a second."""

    def frame(t):
        mine, theirs = int(100 + slow * t), int(100 + quick * t)
        total = stats(publish=mine + theirs + held, deliver=mine + theirs + held, ack=mine + theirs)
        names = [f"10.0.0.{20 + number}:40000 -> 10.0.0.1:5672" for number in range(others)]
        each = stats(deliver=theirs // max(1, others), ack=theirs // max(1, others))
        return {
            "queues": (
                queue("thumbs", consumers=1 + others, messages_unacked=held + others * other_held, stats=total),
            ),
            "consumers": (
                consumer("thumbs", prefetch_count=prefetch),
                *(
                    consumer(
                        "thumbs", tag=name, channel_name=f"{name} (1)", connection_name=name, prefetch_count=prefetch
                    )
                    for name in names
                ),
            ),
            "channels": (
                channel(messages_unacked=held, stats=stats(deliver=mine + held, ack=mine)),
                *(channel(f"{name} (1)", messages_unacked=other_held, stats=each) for name in names),
            ),
            "connections": (connection(), *(connection(name, client_name="peer") for name in names)),
        }

    return frame


@pytest.mark.parametrize(
    "fields",
    [{}, {"held": 250, "slow": 1.0, "prefetch": 300, "quick": 80.0}, {"others": 1, "other_held": 0, "quick": 0.0}],
)
def test_a_slow_consumer_holds_what_quick_ones_could_take(fields):
    """What it was sent waits behind its work for more than a minute."""
    assert [("prefetch-hoarder", "info", "thumbs")] == found(look(film(unequal(**fields), until=20)))

    finding = only(look(film(unequal(**fields), until=75)))

    assert ("prefetch-hoarder", "warning", "thumbs") == (finding.rule, finding.severity, finding.subject.name)
    assert ("billing", fields.get("held", 30)) == (finding.facts["hoarder"]["client"], finding.facts["unacked"])


@pytest.mark.parametrize(
    "fields",
    [
        {"held": 5},
        {"slow": 2.0},
        {"others": 0, "quick": 0.0},
        {"other_held": 30, "quick": 0.4},
        {"other_held": 3, "quick": 0.2},
    ],
    ids=["a few messages", "works them off soon", "no other consumer", "all are slow", "the others are as slow"],
)
def test_consumers_of_one_pace_are_left_alone(fields):
    """Their prefetch may be large, but nobody else could do it sooner."""
    assert "prefetch-hoarder" not in ever([look(film(unequal(**fields), until=75))])
