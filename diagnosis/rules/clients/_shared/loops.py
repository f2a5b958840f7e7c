"""Converts loops of channels or connections (see `diagnosis.churn_loops`) to facts and evidence of findings.

Their texts are in `diagnosis/catalogue/shared/clients.yaml` and `clients.jinja`.
"""

from collections.abc import Iterator

from ackscope.findings import Evidence, Fact, Involved, Subject, Unit, source
from diagnosis.churn_loops import ChurnLoop

MIN_PER_CYCLE = 0.7
"""Events per cycle that count as one in each cycle, because the cluster's counters are refreshed at different times."""

MOST_CONNECTIONS = 0.5
"""Declares per connection that comes and goes, from which most of them declare; probes of others are among them."""
FEW_MESSAGES = 0.3
"""Messages per cycle below which there are none, for the same reason."""


def loop_facts(closing: ChurnLoop) -> dict[str, Fact]:
    """Return facts about an application that loops, for the macros `loop_client` and `loop_activity`.

    Returns:
        `client`, `peer`, `user`, `vhost`, `node`, `connection`; `cycle_rate` a second; `by_broker`: whether the broker
        closes the channels, None if unknown; `activities`: what each cycle does, empty if not known.
    """
    return {
        "client": closing.client,
        "peer": closing.peer,
        "user": closing.connection.user,
        "vhost": closing.connection.vhost,
        "node": closing.connection.node,
        "connection": closing.connection.name,
        "cycle_rate": closing.rate,
        "by_broker": closing.by_broker,
        "activities": _activities(closing),
    }


def loop_involved(closing: ChurnLoop) -> Involved:
    """Return the client name of a loop, and its connection unless connections come and go."""
    there = closing.connection
    return Involved(
        connections=() if closing.whole else (there.name,),
        clients=(there.client_name,) if there.client_name else (),
        nodes=(there.node,) if there.node else (),
    )


def loop_evidence(closing: ChurnLoop, counter: str) -> Iterator[Evidence]:
    """Yield the rate of a loop and the traffic of one cycle as evidence.

    Args:
        closing: the loop.
        counter: `channel` or `connection`, whichever opens and closes.
    """
    yield Evidence(
        key="loop_rate",
        value=closing.rate,
        unit=Unit.PER_SECOND,
        source=source("/api/overview", f"churn_rates.{counter}_created", f"churn_rates.{counter}_closed"),
        facts={"what": counter, "seen_seconds": closing.lasts},
    )
    if closing.sent is not None and closing.received is not None:
        yield Evidence(
            key="loop_traffic",
            source=source("/api/connections", "recv_oct", "send_oct"),
            facts={"received_bytes": closing.received, "sent_bytes": closing.sent},
        )
    if closing.error is not None and closing.by_broker:
        yield Evidence(
            key="loop_error",
            value=closing.error,
            unit=Unit.BYTES,
            source=source("/api/connections", "send_oct", "send_cnt"),
        )
    if closing.alone and closing.declares >= MIN_PER_CYCLE:
        yield Evidence(
            key="loop_declares",
            value=closing.declares,
            source=source("/api/overview", "churn_rates.queue_declared"),
        )


def _activities(closing: ChurnLoop) -> list[Fact]:
    if not closing.alone:
        return []
    done = {"declare": closing.declares, "consume": closing.delivered, "publish": closing.published}
    return [what for what, times in done.items() if times >= MIN_PER_CYCLE]


def subject_key(subject: Subject) -> tuple[str, str | None, str]:
    """Return what identifies the subject of a loop, for relations."""
    return (subject.kind, subject.vhost, subject.name)
