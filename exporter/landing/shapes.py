"""Mappings from broker objects to rows: columns and keys. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Generic, TypeVar

from ackscope.clock import Instant
from ackscope.snapshot import Channel, Consumer, Node, Queue
from ackscope.tables import CHANNEL_SAMPLES, CONSUMER_SAMPLES, NODE_SAMPLES, QUEUE_SAMPLES, Table
from exporter.landing.blocks import Block, BlockKey, Columns, date, micros

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RowMapping(Generic[T]):
    """How objects of one kind become rows of one table.

    Attributes:
        table: the table.
        fields: column -> attribute path, in the order of the table, without the time and `gone`.
        keys: columns that identify an object; they come first.
        not_compared: columns that are landed, but whose change alone does not count as a change.
    """

    table: Table
    fields: Mapping[str, str]
    keys: tuple[str, ...]
    not_compared: frozenset[str] = frozenset()

    @property
    def key(self) -> Callable[[T], Any]:
        """Function that reads the key of an object: one value, or a tuple."""
        return attrgetter(*(self.fields[name] for name in self.keys))

    @property
    def values(self) -> Callable[[T], tuple[Any, ...]]:
        """Function that reads the values of an object that are compared to detect a change."""
        return attrgetter(*(path for name, path in self.fields.items() if name not in {*self.keys, *self.not_compared}))

    def block(self, cluster: str, at: Instant, objects: Sequence[T], removed: Sequence[Any] = ()) -> Block:
        """Return the rows of one poll: of present objects, and of the keys in `removed`."""
        rows = len(objects) + len(removed)
        return Block(
            BlockKey(self.table, cluster, date(at.wall)), rows, lambda: self._columns(micros(at.wall), objects, removed)
        )

    def _columns(self, at: int, objects: Sequence[T], removed: Sequence[Any]) -> Columns:
        columns: list[Sequence[Any]] = [[at] * (len(objects) + len(removed))]
        for name, path in self.fields.items():
            values = list(map(attrgetter(path), objects))
            if name in _INSTANTS:
                values = [None if value is None else micros(value.wall) for value in values]
            elif name in _COUNTED:
                values = [None if value is None else len(value) for value in values]
            elif name in self.keys:
                values = [value or "" for value in values]
            columns.append(values + self._removed(name, removed))
        if "gone" in self.table.names:
            columns.append([False] * len(objects) + [True] * len(removed))
        return columns

    def _removed(self, name: str, removed: Sequence[Any]) -> list[Any]:
        if name not in self.keys:
            return [None] * len(removed)
        if len(self.keys) == 1:
            return list(removed)
        index = self.keys.index(name)
        return [key[index] or "" for key in removed]


_INSTANTS = {"details_at"}
_COUNTED = {"partitions"}


def _same(*names: str, **others: str) -> dict[str, str]:
    return {**{name: name for name in names}, **others}


QUEUES: RowMapping[Queue] = RowMapping(
    QUEUE_SAMPLES,
    {
        "vhost": "vhost",
        "queue": "name",
        "queue_type": "type",
        "messages_ready": "messages_ready",
        "messages_unacked": "messages_unacked",
        "consumers": "consumers",
        "publish": "stats.publish",
        "deliver": "stats.deliver_get",
        "ack": "stats.ack",
        "redeliver": "stats.redeliver",
        "details_at": "details_at",
    },
    keys=("vhost", "queue"),
    not_compared=frozenset({"details_at"}),
)

CHANNELS: RowMapping[Channel] = RowMapping(
    CHANNEL_SAMPLES,
    {
        "channel": "name",
        "connection": "connection_name",
        **_same("vhost", "user", "node", "state", "prefetch_count"),
        "consumers": "consumer_count",
        **_same("messages_unacked", "messages_unconfirmed"),
        "publish": "stats.publish",
        "confirm": "stats.confirm",
        "deliver": "stats.deliver_get",
        "ack": "stats.ack",
        "redeliver": "stats.redeliver",
    },
    keys=("channel",),
)

CONSUMERS: RowMapping[Consumer] = RowMapping(
    CONSUMER_SAMPLES,
    {
        **_same("vhost", "queue", "tag"),
        "channel": "channel_name",
        "connection": "connection_name",
        **_same("user", "node", "prefetch_count", "ack_required", "active", "activity_status"),
    },
    keys=("vhost", "queue", "tag", "channel"),
)

NODES: RowMapping[Node] = RowMapping(
    NODE_SAMPLES,
    {"node": "name", **_same(*NODE_SAMPLES.names[2:])},
    keys=("node",),
)
