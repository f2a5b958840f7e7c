"""Records a broker's payloads for tests and bug reports: `python -m exporter.broker.record --help`."""

import re
import sys
from pathlib import Path
from typing import Any

import orjson

from ackscope.cli import Parser
from ackscope.clock import SystemClock
from ackscope.errors import AckscopeError, BadAnswer, DataError
from ackscope.log import redact
from exporter.broker.families import FAMILIES
from exporter.broker.reader import BrokerReader
from exporter.broker.settings import ManagementSettings

_SECRET = re.compile(r"passw|secret|token|credential|cookie", re.IGNORECASE)
_HOST_PATHS = frozenset(
    {"db_dir", "config_files", "log_files", "ssl_opts", "enabled_plugins_file", "certfile", "cacertfile", "keyfile"}
)
"""Keys that reveal the broker's file system and that no decoder reads."""


def strip(payload: Any) -> Any:
    """Return the payload without secrets and host paths."""
    match payload:
        case dict():
            return {
                key: "(removed)" if _SECRET.search(key) else strip(value)
                for key, value in payload.items()
                if key not in _HOST_PATHS
            }
        case list():
            return [strip(item) for item in payload]
        case str():
            return redact(payload)
        case _:
            return payload


def record(settings: ManagementSettings, out: Path, shape: str | None = None) -> Path:
    """Save the payload of every family as `<out>/<version of the broker>/[<shape>/]<family>.json`.

    Args:
        settings: how to reach the broker.
        out: folder to write to.
        shape: name of a special state of the broker. Families that the broker refuses get no file.

    Returns:
        the folder that was written.

    Raises:
        BrokerError: a family could not be read and no shape is given; nothing is written.
        DataError: the folder cannot be written.
    """
    reader = BrokerReader(settings, SystemClock())
    payloads = {}
    try:
        version = reader.read("overview").value.rabbitmq_version or "unknown"
        # Some families are read node by node, and one connection by connection.
        reader.read("nodes")
        reader.read("connections")
        for family in FAMILIES:
            try:
                payloads[family] = strip(reader.payload(family))
            except BadAnswer:
                if shape is None:
                    raise
    finally:
        reader.close()
    folder = out / re.sub(r"[^0-9A-Za-z.+-]", "_", version) / (shape or "")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for family, payload in payloads.items():
            (folder / f"{family}.json").write_bytes(
                orjson.dumps(payload, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
            )
    except OSError as error:
        raise DataError(f"{folder}: cannot be written ({error.strerror}); use another --out") from None
    return folder


def main() -> int:
    """Run from the command line."""
    parser = Parser(prog="python -m exporter.broker.record", description="Record the payloads of a management API.")
    parser.add_argument("--management", required=True, metavar="URL", help="such as http://user:password@host:15672")
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="folder; gets a subfolder per version")
    parser.add_argument("--shape", metavar="NAME", help="subfolder below that, for a broker in a special state")
    args = parser.parse_args()
    try:
        folder = record(ManagementSettings(url=args.management), args.out, args.shape)
    except AckscopeError as error:
        print(f"record: {redact(str(error))}", file=sys.stderr)
        return error.exit_code
    print(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
