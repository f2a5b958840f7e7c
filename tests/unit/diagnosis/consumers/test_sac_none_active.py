import pytest

from tests.unit.diagnosis.consumers.results import ever, found, only
from tests.unit.diagnosis.pictures import (
    WALL,
    channel,
    connection,
    consumer,
    evidence,
    film,
    full_text,
    look,
    queue,
    stats,
)

SINGLE = {"x-single-active-consumer": True}


def waiting(*, since=30, kind="quorum", stale=1, rate=2.0, active=(), delivers=False, arguments=None, named="invoices"):
    """Two consumers of a single-active queue; from some second on none is active, and their channels stay idle."""

    def frame(t):
        late = t >= since
        ready = int(rate * max(0, t - since))
        work = int(5 * t) if delivers or not late else int(5 * since)
        counters = stats(publish=work + ready, deliver=work, ack=work)
        names = ("10.0.0.7:50001 -> 10.0.0.1:5672", "10.0.0.8:50002 -> 10.0.0.1:5672")
        return {
            "queues": (
                queue(
                    named,
                    type=kind,
                    consumers=2,
                    messages_ready=ready,
                    messages_unacked=0 if late else 1,
                    arguments=SINGLE if arguments is None else arguments,
                    stats=counters,
                ),
            ),
            "consumers": tuple(
                consumer(
                    named,
                    tag=f"t{number}",
                    channel_name=f"{name} (1)",
                    connection_name=name,
                    active=number in active if late else number == 0,
                    activity_status="waiting" if late or number else "single_active",
                    consumer_timeout_ms=10_000 if kind == "quorum" else None,
                )
                for number, name in enumerate(names)
            ),
            "channels": tuple(
                channel(f"{name} (1)", messages_unacked=stale, idle_since=WALL + since - 10 if late else None)
                for name in names
            ),
            "connections": tuple(connection(name, client_name="invoicing") for name in names),
        }

    return frame


@pytest.mark.parametrize(("kind", "named"), [("quorum", "invoices"), ("classic", "payments.in")])
def test_a_queue_none_of_whose_consumers_is_active_is_critical(kind, named):
    """Its channels still count a message each, which the queue does not."""
    result = look(film(waiting(kind=kind, named=named), until=70))
    finding = only(result)

    assert ("sac-none-active", "critical", named) == (finding.rule, finding.severity, finding.subject.name)
    assert (2, 2, ["invoicing"]) == tuple(finding.facts[key] for key in ("consumers", "stale_unacked", "clients"))
    assert 0 == evidence(finding, "unacked").value
    assert {"sac-none-active"} == ever([result])


def test_nothing_is_said_about_a_timeout_that_would_fire():
    """It has fired, and a longer one would not help."""
    report = full_text(only(look(film(waiting(), until=90))))

    assert "raise" not in report
    assert "about to" not in report


def test_without_messages_it_is_a_warning():
    """The next message would not be delivered."""
    assert [("sac-none-active", "warning", "invoices")] == found(look(film(waiting(rate=0), until=70)))


def test_two_readings_are_enough():
    """A change of the active consumer takes less than a second, so nothing harmless looks the same."""
    assert [("sac-none-active", "critical", "invoices")] == found(look(film(waiting(), until=40, start=35)))


@pytest.mark.parametrize(
    "frame",
    [waiting(active=(1,)), waiting(kind="stream"), waiting(delivers=True), waiting(since=200)],
    ids=["another one took over", "stream", "delivers", "works"],
)
def test_what_is_no_standstill(frame):
    """One is active, or the list of consumers contradicts the counters of the queue."""
    assert "sac-none-active" not in ever([look(film(frame, until=70))])
