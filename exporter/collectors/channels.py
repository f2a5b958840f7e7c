"""The channels, over all of a cluster (`/api/channels`): a series a channel would be a new series a reconnect.

The sums carry the names of the official plugin's aggregated endpoint. Its counters are left out: they add up
only the channels that are open, so they fall when one closes.
"""

from collections import Counter
from collections.abc import Sequence

from prometheus_client.core import Metric

from ackscope.snapshot import Channel, Snapshot
from exporter.collectors.contract import Collector, Limits
from exporter.metrics import Families, Reading, Spec, gauge, whole_sum


def _sum(name: str, text: str, field: str) -> Spec:
    text = f"{text}, over all channels; withheld when one did not say."
    return gauge(name, text, f"/api/channels {field}", "cluster")


_READINGS: tuple[Reading[Channel], ...] = (
    Reading(_sum("rabbitmq_channel_consumers", "Consumers", "consumer_count"), lambda it: it.consumer_count),
    Reading(
        _sum(
            "rabbitmq_channel_messages_unacked",
            "Messages delivered and not acknowledged",
            "messages_unacknowledged",
        ),
        lambda it: it.messages_unacked,
    ),
    Reading(
        _sum(
            "rabbitmq_channel_messages_unconfirmed",
            "Messages published and not confirmed yet",
            "messages_unconfirmed",
        ),
        lambda it: it.messages_unconfirmed,
    ),
    Reading(
        _sum(
            "rabbitmq_channel_messages_uncommitted",
            "Messages published in transactions that are open",
            "messages_uncommitted",
        ),
        lambda it: it.messages_uncommitted,
    ),
    Reading(
        _sum(
            "rabbitmq_channel_acks_uncommitted",
            "Acknowledgements in transactions that are open",
            "acks_uncommitted",
        ),
        lambda it: it.acks_uncommitted,
    ),
)
MODES = gauge(
    "ackscope_channels",
    "Channels by mode (confirm, transaction, plain); a channel that did not say is in none.",
    "/api/channels confirm, transactional",
    "cluster",
    "mode",
)

SPECS = (*(reading.spec for reading in _READINGS), MODES)


def mode(channel: Channel) -> str | None:
    """How the channel publishes: confirm, transaction or plain; None where it did not say."""
    if channel.confirm:
        return "confirm"
    if channel.transactional:
        return "transaction"
    return None if channel.confirm is None or channel.transactional is None else "plain"


def collect(clusters: Sequence[Snapshot], limits: Limits) -> list[Metric]:  # noqa: ARG001  one signature for all
    """Families of all clusters."""
    families = Families(SPECS)
    for snapshot in clusters:
        channels = snapshot.channels.value
        if channels is None:
            continue
        labels = {"cluster": snapshot.cluster}
        for reading in _READINGS:
            families.add(reading.spec, labels, whole_sum(map(reading.read, channels)))
        modes = Counter(mode(channel) for channel in channels)
        for name in ("confirm", "transaction", "plain"):
            families.add(MODES, {"cluster": snapshot.cluster, "mode": name}, modes[name])
    return families.result()


COLLECTOR = Collector(SPECS, collect)
