"""Films of consumers at work, and outcomes of the rtt probe."""

from ackscope.records import ProbeOutcome, ProbeState, ProbeStep, Quantiles
from tests.unit.diagnosis.pictures import NODE, WALL, channel, connection, consumer, queue, stats


def busy(
    *, comes=10.0, goes=5.0, prefetch=10, held=None, consumers=1, kind="classic", of=None, on=None, redelivers=0.0
):
    """Return a film of consumers that acknowledge `goes` messages per second in total, while `comes` are published."""
    full = prefetch * consumers if held is None else held

    def frame(t):
        acked, published = int(100 + goes * t), int(200 + full + comes * t)
        counters = {"ack": acked, "deliver": acked + full + int(redelivers * t), "redeliver": int(redelivers * t)}
        waiting = max(0, published - acked - full)
        total = stats(publish=published, deliver_get=counters["deliver"], **counters)
        names = [f"10.0.0.7:{50001 + number} -> 10.0.0.1:5672" for number in range(consumers)]
        return {
            "queues": (
                queue(
                    type=kind,
                    consumers=consumers,
                    messages_ready=waiting,
                    messages_unacked=full,
                    stats=total,
                    **(of or {}),
                ),
            ),
            "consumers": tuple(
                consumer(
                    **{
                        "tag": f"ctag{number}",
                        "channel_name": f"{name} (1)",
                        "connection_name": name,
                        "prefetch_count": prefetch,
                        **(on or {}),
                    }
                )
                for number, name in enumerate(names)
            ),
            "channels": tuple(
                channel(f"{name} (1)", messages_unacked=full // consumers, stats=stats(**counters)) for name in names
            ),
            "connections": tuple(connection(name) for name in names),
        }

    return frame


def trip(seconds, *, node=NODE, state=ProbeState.RUNNING, doubtful=None):
    """An outcome of the rtt probe."""
    step = ProbeStep(attempts=50, seconds=Quantiles(count=50, p50=seconds, p90=seconds, p99=seconds, max=seconds))
    return ProbeOutcome(
        probe="rtt",
        stream="rtt",
        queue_type="classic",
        vhost="/",
        queue="ackscope.probe.rtt",
        node=node,
        at=WALL,
        state=state,
        doubtful=doubtful,
        steps={"declare": step},
    )
