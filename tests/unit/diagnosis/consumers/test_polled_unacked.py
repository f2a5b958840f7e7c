import pytest

from tests.unit.diagnosis.consumers.results import ever, found, only, urgent
from tests.unit.diagnosis.pictures import CHANNEL, channel, connection, film, look, queue, stats, text


def polled(*, rate=6.0, name="exports", kind="quorum", acks=lambda t: 0, until=None, other=0):
    """A client that polls; `acks` is how many messages it has acknowledged at a time."""

    def frame(t):
        got = int(rate * (t if until is None else min(t, until)))
        acked = min(got, acks(t))
        held = got - acked
        counters = stats(publish=got + 5, get=got, get_empty=3, **({"ack": acked} if acked else {}))
        many = held if kind == "quorum" else 0
        named = [queue(name, type=kind, messages_ready=5, messages_unacked=held, consumers=many, stats=counters)]
        named += [queue(f"other{number}", messages_unacked=held, stats=stats(get=held)) for number in range(other)]
        idle = None if until is None or t <= until else 1_800_000_000.0 + until
        return {
            "queues": tuple(named),
            "channels": (channel(consumer_count=0, messages_unacked=held, stats=counters, idle_since=idle),),
            "connections": (connection(client_name="cron"),),
        }

    return frame


@pytest.mark.parametrize("kind", ["quorum", "classic"])
@pytest.mark.parametrize("rate", [0.5, 40.0])
def test_what_is_polled_and_never_settled_is_a_warning(kind, rate):
    """It grows without a limit, and the number of consumers of a quorum queue means nothing."""
    finding = only(look(film(polled(kind=kind, rate=rate), until=70)))

    assert ("polled-unacked", "warning", "exports") == (finding.rule, finding.severity, finding.subject.name)
    assert ("cron", int(70 * rate), True) == tuple(finding.facts[key] for key in ("client", "unacked", "grows"))
    assert "basic.get" in text(finding).summary


def test_it_is_information_for_as_long_as_a_batch_looks_the_same():
    """The finding says when it becomes a warning."""
    assert [] == urgent(look(film(polled(), until=35)))
    assert [("polled-unacked", "info", "exports")] == found(look(film(polled(), until=35)))


@pytest.mark.parametrize("work", [8, 20])
def test_a_client_that_acknowledges_its_batches_is_left_alone(work):
    """What it holds falls with each batch."""
    frame = polled(acks=lambda t: int(6 * (t // work * work)))

    assert {"info"} >= {
        severity for until in (30, 60, 90, 200) for _, severity, _ in found(look(film(frame, until=until)))
    }


def test_one_long_job_is_no_fault():
    """A client that works on a single message for minutes."""
    assert [] == urgent(look(film(polled(rate=1.0, until=1), until=200)))


def test_where_several_queues_fit_the_client_is_the_subject():
    """The API does not say from which queue a channel polled."""
    finding = next(each for each in look(film(polled(other=1), until=70)).findings if each.rule == "polled-unacked")

    assert ("connection", CHANNEL.rsplit(" (", 1)[0]) == (finding.subject.kind, finding.subject.name)
    assert {"exports", "other0"} == set(finding.facts["queues"])


def test_a_client_that_hangs_after_batches_is_found():
    """It settled before, so it gets three times as long as a batch took."""
    frame = polled(acks=lambda t: int(6 * min(60, t // 10 * 10)), until=70)

    assert "polled-unacked" in ever([look(film(frame, until=160))])
    assert [] == urgent(look(film(frame, until=75)))
