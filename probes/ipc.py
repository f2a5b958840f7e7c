"""The line protocol between the exporter and the probe process. Both sides use this encoder and decoder.

To the child (its stdin), one line: `{"targets": [{"cluster", "servers": {node: server}, "probes": {...}}]}`, where a
server is `{"url", "ca_file", "verify", "stream_port", "password_file"}` and that of the cluster has the node "".
From the child (its stdout), lines: `{"kind": "messages" | "bursts" | "steps" | "outcomes", "cluster", "rows": [...]}`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from ackscope.address import parse_amqp
from ackscope.errors import AckscopeError, DataError
from ackscope.records import (
    AckBurst,
    Batching,
    BatchingKind,
    MessageRecord,
    Outcome,
    ProbeOutcome,
    ProbeState,
    ProbeStep,
    Quantiles,
    StepRecord,
)
from probes.settings import AmqpServer, ProbesSettings, full_url

_QUANTILES = (
    "confirm",
    "response",
    "delivery",
    "send_delay",
    "loop_lag",
    "burst_messages",
    "burst_interval",
    "unacked",
)


_Row = MessageRecord | AckBurst | StepRecord | ProbeOutcome


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """Records of the probes of one cluster."""

    cluster: str
    messages: list[MessageRecord] = field(default_factory=list)
    bursts: list[AckBurst] = field(default_factory=list)
    steps: list[StepRecord] = field(default_factory=list)
    outcomes: list[ProbeOutcome] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ProbeTarget:
    """A cluster that the probes measure.

    Attributes:
        servers: where to connect, as `AmqpSettings.servers` returns it.
    """

    cluster: str
    servers: Mapping[str, AmqpServer]
    probes: ProbesSettings

    def to_json(self) -> dict[str, Any]:
        """Convert the target for the child. Passwords are in the addresses; their file goes along, as it may change."""
        return {
            "cluster": self.cluster,
            "servers": {node: _server_document(server) for node, server in self.servers.items()},
            "probes": self.probes.model_dump(mode="json"),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "ProbeTarget":
        """Decode a target.

        Raises:
            DataError: unexpected format; the message contains no value, which might be a password.
        """
        try:
            return cls(
                str(document["cluster"]),
                {node: _server(server) for node, server in dict(document["servers"]).items()},
                ProbesSettings.model_validate(document["probes"]),
            )
        except ValidationError as error:
            places = ", ".join(".".join(str(word) for word in item["loc"]) for item in error.errors())
            raise DataError(f"probe target: invalid at {places}") from None
        except (AckscopeError, AttributeError, KeyError, TypeError, ValueError) as error:
            raise DataError(f"probe target: unexpected format ({type(error).__name__})") from None


def _server_document(server: AmqpServer) -> dict[str, Any]:
    return {
        "url": full_url(server.address),
        "ca_file": None if server.ca_file is None else str(server.ca_file),
        "verify": server.verify,
        "stream_port": server.stream_port,
        "password_file": None if server.password_file is None else str(server.password_file),
    }


def _server(document: Mapping[str, Any]) -> AmqpServer:
    ca_file, password_file = document["ca_file"], document["password_file"]
    return AmqpServer(
        parse_amqp(document["url"]),
        None if ca_file is None else Path(ca_file),
        bool(document["verify"]),
        stream_port=document["stream_port"],
        password_file=None if password_file is None else Path(password_file),
    )


def encode_targets(targets: Sequence[ProbeTarget]) -> bytes:
    """Encode the line that starts the child. It holds credentials."""
    return orjson.dumps({"targets": [target.to_json() for target in targets]}) + b"\n"


def decode_targets(line: bytes) -> list[ProbeTarget]:
    """Decode the line that starts the child.

    Raises:
        DataError: unexpected format; the message contains no text of the line.
    """
    try:
        return [ProbeTarget.from_json(item) for item in orjson.loads(line)["targets"]]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        raise DataError('probe targets: expected one JSON line {"targets": [...]} on stdin') from None


def encode(kind: str, cluster: str, rows: Sequence[_Row]) -> bytes:
    """Encode a line to the exporter, including its newline."""
    return orjson.dumps({"kind": kind, "cluster": cluster, "rows": rows}) + b"\n"


def encode_batch(batch: RecordBatch) -> list[bytes]:
    """Encode a batch, with one line for each kind of record that it holds."""
    kinds: tuple[tuple[str, Sequence[_Row]], ...] = (
        ("messages", batch.messages),
        ("bursts", batch.bursts),
        ("steps", batch.steps),
        ("outcomes", batch.outcomes),
    )
    return [encode(kind, batch.cluster, rows) for kind, rows in kinds if rows]


def decode(line: bytes) -> RecordBatch:
    """Decode one line from the child.

    Raises:
        DataError: unexpected format.
    """
    try:
        document = orjson.loads(line)
        read = _READERS[document["kind"]]
        rows = [read(row) for row in document["rows"]]
        return RecordBatch(document["cluster"], **{document["kind"]: rows})
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise DataError(f"record from the probes: unexpected format ({type(error).__name__}: {error})") from None


def _message(row: dict[str, Any]) -> MessageRecord:
    row["outcome"] = Outcome(row["outcome"])
    return MessageRecord(**row)


def _burst(row: dict[str, Any]) -> AckBurst:
    return AckBurst(**row)


def _step(row: dict[str, Any]) -> StepRecord:
    return StepRecord(**row)


def _outcome(row: dict[str, Any]) -> ProbeOutcome:
    row["state"] = ProbeState(row["state"])
    for name in _QUANTILES:
        row[name] = Quantiles(**row[name])
    row["steps"] = {
        name: ProbeStep(**{**step, "seconds": Quantiles(**step["seconds"])}) for name, step in row["steps"].items()
    }
    batching = row["batching"]
    if batching is not None:
        row["batching"] = Batching(**{**batching, "kind": BatchingKind(batching["kind"])})
    return ProbeOutcome(**row)


_READERS: Mapping[str, Callable[[dict[str, Any]], Any]] = {
    "messages": _message,
    "bursts": _burst,
    "steps": _step,
    "outcomes": _outcome,
}
