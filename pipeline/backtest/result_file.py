"""The last backtest of a cluster: one JSON document, replaced atomically."""

from typing import Any
from urllib.parse import quote

import orjson

from ackscope.errors import DataError
from ackscope.object_path import Place
from pipeline.backtest.document import VERSION
from pipeline.storage.durable import atomic_write, sync_folder

FOLDER = "_backtest"


def result_path(root: Place, cluster: str) -> Place:
    """The file of a cluster."""
    return root / FOLDER / f"{quote(cluster, safe='')}.json"


def write(root: Place, cluster: str, document: dict[str, Any]) -> None:
    """Replace the result of a cluster.

    Raises:
        DataError: the file cannot be written.
    """
    path = result_path(root, cluster)
    atomic_write(path, lambda file: file.write(orjson.dumps(document)))
    sync_folder(path.parent)


def read(root: Place, cluster: str) -> dict[str, Any] | None:
    """The last result of a cluster; None without one.

    Raises:
        DataError: the file cannot be read.
    """
    path = result_path(root, cluster)
    try:
        document: dict[str, Any] = orjson.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check its owner") from None
    except orjson.JSONDecodeError:
        raise DataError(f"{path}: is damaged; run `ackscope pipeline backtest` again") from None
    if document.get("version") != VERSION:
        raise DataError(f"{path}: is of another version; run `ackscope pipeline backtest` again")
    return document
