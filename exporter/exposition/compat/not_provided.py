"""What the ended exporter showed and is not made here, and why."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class NotProvided:
    """One metric of the ended exporter that is not made here.

    Attributes:
        why: in a few words.
        instead: what to ask now; "" where there is nothing.
    """

    name: str
    why: str
    instead: str = ""


_NOT_LISTED = "the list of exchanges tells what came in and went out, and no more"
_ZERO = "the broker does not count it by queue; the ended exporter wrote a constant 0"
NOT_PROVIDED: tuple[NotProvided, ...] = (
    NotProvided(name="exporter_build_info", why="it tells of the ended exporter itself", instead="ackscope_build_info"),
    NotProvided(
        name="exchange_messages_published_total",
        why="the field behind it is never told; today the name counts what came in",
        instead="rabbitmq_exchange_messages_published_total",
    ),
    *(
        NotProvided(name=f"exchange_messages_{name}_total", why=_NOT_LISTED, instead=instead)
        for name, instead in (
            ("confirmed", "rabbitmq_global_messages_confirmed_total"),
            ("delivered", "rabbitmq_global_messages_delivered_consume_manual_ack_total"),
            ("delivered_noack", "rabbitmq_global_messages_delivered_consume_auto_ack_total"),
            ("get", "rabbitmq_global_messages_delivered_get_manual_ack_total"),
            ("get_noack", "rabbitmq_global_messages_delivered_get_auto_ack_total"),
            ("ack", "rabbitmq_global_messages_acknowledged_total"),
            ("redelivered", "rabbitmq_global_messages_redelivered_total"),
            ("returned", "rabbitmq_global_messages_unroutable_returned_total"),
        )
    ),
    NotProvided(name="queue_messages_confirmed_total", why=_ZERO, instead="rabbitmq_global_messages_confirmed_total"),
    NotProvided(
        name="queue_messages_returned_total", why=_ZERO, instead="rabbitmq_global_messages_unroutable_returned_total"
    ),
    *(
        NotProvided(
            name=f"queue_disk_{name}_total",
            why="the list of queues does not tell it; the ended exporter wrote a constant 0",
            instead=f"ackscope_cluster_disk_{name}_total",
        )
        for name in ("reads", "writes")
    ),
    *(
        NotProvided(
            name=name,
            why="the test behind it does nothing and passes always since 4.0.6",
            instead="ackscope_probe_success, ackscope_health_check",
        )
        for name in ("aliveness_info", "aliveness_test")
    ),
)
