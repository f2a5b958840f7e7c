"""Metrics of each queue with their source fields (`/api/queues`)."""

from ackscope.snapshot import Queue
from exporter.exposition.cardinality.emit import FieldMetric
from exporter.exposition.specs import MetricReader, Spec, Value, counter, gauge, only_in, untested_because

LABELS = ("cluster", "vhost", "queue")
API = "/api/queues"


def _gauge(name: str, text: str, field: str) -> Spec:
    return gauge(name, text, f"{API} {field}", *LABELS)


def _count(name: str, text: str, field: str) -> Spec:
    return counter(name, text, f"{API} {field}", *LABELS)


FIELD_METRICS = (
    FieldMetric(_gauge("rabbitmq_queue_messages", "Messages, ready and unacknowledged.", "messages"), "messages"),
    FieldMetric(
        _gauge("rabbitmq_queue_messages_ready", "Messages ready to be delivered.", "messages_ready"),
        "messages_ready",
    ),
    FieldMetric(
        _gauge(
            "rabbitmq_queue_messages_unacked", "Messages delivered but not yet acknowledged.", "messages_unacknowledged"
        ),
        "messages_unacked",
    ),
    FieldMetric(_gauge("rabbitmq_queue_consumers", "Consumers.", "consumers"), "consumers"),
    FieldMetric(
        _gauge("rabbitmq_queue_process_memory_bytes", "Memory of the queue's process.", "memory"),
        "memory",
    ),
    FieldMetric(
        _gauge("rabbitmq_queue_messages_bytes", "Size of all message bodies.", "message_bytes"),
        "message_bytes",
    ),
    FieldMetric(
        _gauge("rabbitmq_queue_messages_ready_bytes", "Size of ready message bodies.", "message_bytes_ready"),
        "message_bytes_ready",
    ),
    FieldMetric(
        _gauge(
            "rabbitmq_queue_messages_unacked_bytes",
            "Size of unacknowledged message bodies.",
            "message_bytes_unacknowledged",
        ),
        "message_bytes_unacked",
    ),
    FieldMetric(_gauge("rabbitmq_queue_messages_ram", "Messages in memory.", "messages_ram"), "messages_ram"),
    FieldMetric(
        _gauge("rabbitmq_queue_messages_ram_bytes", "Size of message bodies in memory.", "message_bytes_ram"),
        "message_bytes_ram",
    ),
    FieldMetric(
        _gauge("rabbitmq_queue_messages_ready_ram", "Ready messages in memory; classic queues.", "messages_ready_ram"),
        "messages_ready_ram",
    ),
    FieldMetric(
        _gauge(
            "rabbitmq_queue_messages_unacked_ram",
            "Unacknowledged messages in memory; classic queues.",
            "messages_unacknowledged_ram",
        ),
        "messages_unacked_ram",
    ),
    FieldMetric(
        _gauge("rabbitmq_queue_messages_persistent", "Persistent messages.", "messages_persistent"),
        "messages_persistent",
    ),
    FieldMetric(
        _gauge(
            "rabbitmq_queue_messages_persistent_bytes",
            "Size of persistent message bodies.",
            "message_bytes_persistent",
        ),
        "message_bytes_persistent",
    ),
    FieldMetric(
        only_in(
            _gauge(
                "rabbitmq_queue_messages_paged_out",
                "Messages paged out of memory; classic queues.",
                "messages_paged_out",
            ),
            until=(4, 3),
        ),
        "messages_paged_out",
    ),
    FieldMetric(
        only_in(
            _gauge(
                "rabbitmq_queue_messages_paged_out_bytes",
                "Size of message bodies paged out of memory; classic queues.",
                "message_bytes_paged_out",
            ),
            until=(4, 3),
        ),
        "message_bytes_paged_out",
    ),
    FieldMetric(
        untested_because(
            _gauge(
                "ackscope_queue_messages_dead_lettering",
                "Messages in at-least-once dead-lettering, not yet confirmed by the target; quorum queues.",
                "messages_dlx",
            ),
            "needs a quorum queue with at-least-once dead-lettering and a target that does not confirm",
        ),
        "messages_dlx",
    ),
    FieldMetric(
        only_in(
            _gauge("ackscope_queue_publishers", "Channels publishing to the queue; quorum queues.", "publishers"),
            since=(4, 0),
        ),
        "publishers",
    ),
    FieldMetric(
        only_in(
            # A gauge, although the plugin calls it a counter: retention removes segments.
            _gauge("rabbitmq_stream_segments", "Segment files of a stream.", "segments"),
            since=(3, 13),
        ),
        "segments",
    ),
    FieldMetric(
        _count(
            "rabbitmq_queue_messages_published_total", "Messages published into the queue.", "message_stats.publish"
        ),
        "stats.publish",
    ),
    FieldMetric(
        _count(
            "rabbitmq_queue_messages_delivered_ack_total",
            "Messages delivered to consumers with manual acknowledgement.",
            "message_stats.deliver",
        ),
        "stats.deliver",
    ),
    FieldMetric(
        _count(
            "rabbitmq_queue_messages_delivered_total",
            "Messages delivered to consumers with automatic acknowledgement.",
            "message_stats.deliver_no_ack",
        ),
        "stats.deliver_no_ack",
    ),
    FieldMetric(
        _count("rabbitmq_queue_messages_redelivered_total", "Messages redelivered.", "message_stats.redeliver"),
        "stats.redeliver",
    ),
    FieldMetric(
        _count("rabbitmq_queue_messages_acked_total", "Messages acknowledged.", "message_stats.ack"),
        "stats.ack",
    ),
    FieldMetric(
        _count(
            "rabbitmq_queue_get_ack_total",
            "Messages fetched with basic.get, manual acknowledgement.",
            "message_stats.get",
        ),
        "stats.get",
    ),
    FieldMetric(
        _count(
            "rabbitmq_queue_get_total",
            "Messages fetched with basic.get, automatic acknowledgement.",
            "message_stats.get_no_ack",
        ),
        "stats.get_no_ack",
    ),
    FieldMetric(
        _count("rabbitmq_queue_get_empty_total", "basic.get calls on the empty queue.", "message_stats.get_empty"),
        "stats.get_empty",
    ),
    FieldMetric(
        _count(
            "rabbitmq_queue_process_reductions_total",
            "Erlang reductions (CPU work) of the queue's process.",
            "reductions",
        ),
        "reductions",
    ),
)


def _size(names: tuple[str, ...] | None) -> Value:
    return None if names is None else len(names)


READERS: tuple[MetricReader[Queue], ...] = (
    MetricReader(
        _gauge(
            "rabbitmq_queue_consumer_capacity",
            "Consumer capacity: fraction of time, 0 to 1, in which the queue could deliver immediately; classic "
            "queues only.",
            "consumer_capacity",
        ),
        lambda q: q.consumer_capacity,
    ),
    MetricReader(
        _gauge(
            "rabbitmq_queue_consumer_utilisation",
            "Older name of consumer capacity; classic queues only.",
            "consumer_utilisation",
        ),
        lambda q: q.consumer_utilisation,
    ),
    MetricReader(
        _gauge(
            "rabbitmq_queue_head_message_timestamp",
            "Timestamp property of the message at the head, in seconds since 1970, if publishers set it; classic "
            "queues only.",
            "head_message_timestamp",
        ),
        lambda q: q.head_message_timestamp,
    ),
    MetricReader(_gauge("ackscope_queue_members", "Replicas.", "members"), lambda q: _size(q.members)),
    MetricReader(
        _gauge("ackscope_queue_members_online", "Replicas that are online.", "online"), lambda q: _size(q.online)
    ),
    MetricReader(
        only_in(_gauge("ackscope_queue_mirrors", "Mirrors of a classic queue.", "slave_nodes"), until=(4, 0)),
        lambda q: _size(q.mirrors),
    ),
    MetricReader(
        only_in(
            _gauge(
                "ackscope_queue_mirrors_synchronised",
                "Synchronised mirrors.",
                "synchronised_slave_nodes",
            ),
            until=(4, 0),
        ),
        lambda q: _size(q.synchronised_mirrors),
    ),
    MetricReader(
        _gauge(
            "ackscope_queue_details_timestamp_seconds",
            "When everything but the message totals was read, in seconds since 1970, if that is not at every poll.",
            "(time of the response)",
        ),
        lambda q: None if q.details_at is None else q.details_at.wall,
    ),
)
