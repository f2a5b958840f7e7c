import pytest

from tests.unit.diagnosis.consumers.results import ever, only
from tests.unit.diagnosis.pictures import channel, connection, consumer, evidence, film, look, queue, stats, text


def orphans(*, unacked=40, held=0, kind="quorum", got=None, uncommitted=0, second_queue=False, busy=True):
    """A quorum queue that counts 40 unacknowledged messages; its consumer works and holds hardly any."""

    def frame(t):
        done = int(10 * t) if busy else 0
        counters = stats(publish=done + unacked, ack=done, deliver=done + unacked, get=got)
        more = (consumer("other", tag="t2"),) if second_queue else ()
        return {
            "queues": (queue(type=kind, messages_unacked=unacked, stats=counters),),
            "consumers": (consumer(prefetch_count=100), *more),
            "channels": (
                channel(messages_unacked=held, acks_uncommitted=uncommitted, stats=stats(ack=done, deliver=done)),
            ),
            "connections": (connection(),),
        }

    return frame


def test_messages_that_nobody_holds_are_found_after_five_minutes():
    """The queue counts 40, its channels at most 3."""
    assert "orphaned-unacked" not in ever([look(film(orphans(held=3), until=250))])

    finding = only(look(film(orphans(held=3), until=330)))

    assert ("orphaned-unacked", "warning", "orders") == (finding.rule, finding.severity, finding.subject.name)
    assert (37, 40, 3) == tuple(finding.facts[key] for key in ("orphans", "unacked", "channel_unacked"))
    assert ["ctag1"] == [each["tag"] for each in evidence(finding, "consumers").facts["consumers"]]
    assert "rabbitmq-queues quorum_status -p / orders" == text(finding).steps[0].command


def test_without_any_acknowledgement_it_is_no_stuck_consumer():
    """No channel holds them, so the consumer did not cause it."""
    assert {"orphaned-unacked"} == ever([look(film(orphans(busy=False), until=330))])


@pytest.mark.parametrize(
    "frame",
    [
        orphans(held=40),
        orphans(held=None),
        orphans(kind="classic"),
        orphans(got=5),
        orphans(uncommitted=3),
        orphans(second_queue=True),
    ],
    ids=["held", "not reported", "classic", "polled", "open transaction", "shared channel"],
)
def test_where_the_sum_over_channels_means_nothing(frame):
    """A channel holds them, or it is not known which one."""
    assert "orphaned-unacked" not in ever([look(film(frame, until=330))])
