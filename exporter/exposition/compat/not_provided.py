"""Metrics of rabbitmq_exporter that are not provided, and why."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class NotProvided:
    """One metric of rabbitmq_exporter that is not provided.

    Attributes:
        why: short reason.
        instead: metric to use instead; "" if there is none.
    """

    name: str
    why: str
    instead: str = ""


_NOT_LISTED = "the exchange list only reports messages in and out"
_ZERO = "the broker does not count it by queue; rabbitmq_exporter wrote a constant 0"
NOT_PROVIDED: tuple[NotProvided, ...] = (
    NotProvided(name="exporter_build_info", why="it describes rabbitmq_exporter itself", instead="ackscope_build_info"),
    NotProvided(
        name="exchange_messages_published_total",
        why="its source field is never filled; today the name counts messages in",
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
            why="the queue list does not report it; rabbitmq_exporter wrote a constant 0",
            instead=f"ackscope_cluster_disk_{name}_total",
        )
        for name in ("reads", "writes")
    ),
    *(
        NotProvided(
            name=name,
            why="the test behind it is a no-op that always passes since 4.0.6",
            instead="ackscope_probe_success, ackscope_health_check",
        )
        for name in ("aliveness_info", "aliveness_test")
    ),
)
