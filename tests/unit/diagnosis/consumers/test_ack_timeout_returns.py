"""Jobs that take longer than the acknowledgement timeout: each is delivered again and again, and none is finished."""

import pytest

from tests.unit.diagnosis.consumers.results import own
from tests.unit.diagnosis.pictures import WALL, channel, connection, consumer, film, look, queue, stats, text

RULE = "consumer-ack-timeout"


def encoder(
    *,
    name="video.encode",
    timeout=12.0,
    job=45.0,
    rate=0.3,
    workers=2,
    listed=True,
    finishes=False,
    dies=False,
    by_policy=False,
):
    """Workers with prefetch 1. The broker puts each delivery back after the timeout; the worker acks late.

    Then it connects again. With `listed`, the channel counts its consumer and message until then, as 4.3 does.
    """
    cycle = job + 1

    def frame(t):
        number, within = divmod(t, cycle)
        holds = within < (job if finishes else timeout)
        acked = int(workers * number)
        delivered = int(workers * (number + 1))
        left = acked if finishes else 0
        published = int(workers + rate * t) + left
        held = workers if holds else 0
        here = workers if holds or (listed and within < job) else 0
        began = number * cycle
        peers = [f"10.0.4.{each}:5{each}{int(number):03d} -> 10.0.0.1:5672" for each in range(workers)]
        setting = {"effective_policy": {"consumer-timeout": int(timeout * 1000)}}
        if not by_policy:
            setting = {"arguments": {"x-consumer-timeout": int(timeout * 1000)}}
        counters = stats(
            publish=published, deliver=delivered, ack=acked, redeliver=0 if finishes else int(workers * number)
        )
        return {
            "queues": (
                queue(
                    name,
                    type="quorum",
                    consumers=held,
                    messages_unacked=held,
                    messages_ready=published - left - held,
                    stats=counters,
                    **setting,
                ),
            ),
            "consumers": tuple(
                consumer(
                    name,
                    tag=f"c{peer}",
                    channel_name=f"{peer} (1)",
                    connection_name=peer,
                    prefetch_count=1,
                    consumer_timeout_ms=int(timeout * 1000),
                )
                for peer in peers[:here]
            ),
            "channels": tuple(
                channel(f"{peer} (1)", messages_unacked=1, idle_since=WALL + began + 1, stats=stats(deliver=1))
                for peer in peers[:here]
            ),
            "connections": tuple(
                connection(peer, client_name="encoder", connected_at=WALL + began)
                for peer in peers
                if not dies or holds
            ),
        }

    return frame


def reported(made, until, every=5.0, start=0.0):
    """The findings of the rule that are causes."""
    return [each for each in own(look(film(made, until=until, every=every, start=start))) if each.rule == RULE]


@pytest.mark.parametrize(
    ("fields", "until"),
    [({}, 80), ({}, 85), ({"name": "pdf", "timeout": 30.0, "job": 100.0, "rate": 1.0, "workers": 3}, 160)],
)
def test_the_text_says_that_it_has_happened_and_that_none_is_finished(fields, until):
    """The queue counts acknowledgements, and no message left it."""
    (finding,) = reported(encoder(**fields), until)
    workers = fields.get("workers", 2)

    assert finding.facts["ended"]
    assert (2 * workers, 2, workers) == tuple(finding.facts["returned"][key] for key in ("messages", "rounds", "acked"))
    report = text(finding)
    assert f"{2 * workers} messages came back" in report.summary
    assert "None of them is finished" in report.cause
    assert "within a minute" not in report.summary


def test_it_says_so_while_the_next_consumers_hold_the_same_messages():
    """They came back twice, and are held for the third time."""
    (finding,) = reported(encoder(), 102)

    assert (False, 4) == (finding.facts["ended"], finding.facts["returned"]["messages"])
    assert "has done so already" in text(finding).summary


def test_one_look_reports_the_broker_that_has_acted():
    """The queue has no consumer, while its channels count one with a message."""
    (finding,) = reported(encoder(), until=80, start=68, every=6)

    assert (True, "warning") == (finding.facts["ended"], finding.severity.value)


def test_consumers_that_come_and_go_are_its_consequence():
    """They end because of the timeout."""
    findings = own(look(film(encoder(job=16), until=100)))

    assert "consumer-flapping" not in {each.rule for each in findings}


@pytest.mark.parametrize(
    ("fields", "until"),
    [({"listed": False, "dies": True}, 35), ({"job": 8.0, "finishes": True}, 60)],
    ids=["a client that ended once", "jobs that are finished in time"],
)
def test_what_looks_like_it_has_not_happened(fields, until):
    """A client that ends returns its messages too, and one that finishes returns none."""
    assert [] == [each for each in reported(encoder(**fields), until) if each.facts["returned"] or each.facts["ended"]]


def test_messages_that_left_are_not_called_unfinished():
    """Then some of the acknowledgements may have been in time."""

    def made(t):
        picture = encoder()(t)
        (seen,) = picture["queues"]
        more = stats(publish=(seen.stats.publish or 0) + 7, deliver=seen.stats.deliver, ack=(seen.stats.ack or 0) + 7)
        left = queue(
            seen.name,
            type="quorum",
            consumers=seen.consumers,
            messages_unacked=seen.messages_unacked,
            messages_ready=seen.messages_ready,
            arguments=seen.arguments,
            stats=more,
        )
        return {**picture, "queues": (left,)}

    (finding,) = reported(made, 80)

    assert (9, 7) == (finding.facts["returned"]["acked"], finding.facts["returned"]["left"])
    assert "finished for the broker" not in text(finding).cause
    assert "7 messages at most have left the queue" in text(finding).cause


@pytest.mark.parametrize("by_policy", [False, True])
def test_a_policy_is_no_help_if_the_timeout_is_an_argument(by_policy):
    """Of both, the shorter one applies."""
    (finding,) = reported(encoder(by_policy=by_policy), 80)

    commands = " ".join(step.command or "" for step in text(finding).steps)
    assert by_policy == ("set_policy" in commands)
