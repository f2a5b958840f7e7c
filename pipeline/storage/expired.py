"""From which hour on the raw rows of a cluster are still whole: what is older stays rolled up as it is.

Without it, one late row of an expired hour would be rolled up as if it were the whole hour.
"""

from functools import partial
from pathlib import Path
from typing import IO

import orjson

from ackscope.errors import DataError
from pipeline.storage.durable import atomic_write

NAME = "_expired.json"


def first_whole_hours(landing: Path) -> dict[str, int]:
    """Hours since 1970, by cluster; a cluster that never lost raw rows is not there.

    Raises:
        DataError: the file is damaged.
    """
    path = landing / NAME
    try:
        return {str(name): int(hour) for name, hour in orjson.loads(path.read_bytes()).items()}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); look at its disk and owner") from None
    except (ValueError, AttributeError, TypeError):
        raise DataError(
            f"{path}: is damaged, and tells which raw hours have expired; remove it, "
            "`ackscope pipeline expire` writes it again"
        ) from None


def raise_floor(landing: Path, cluster: str, hour: int) -> None:
    """From now on this is the first whole hour of the cluster; it never goes back.

    Raises:
        DataError: the file is damaged or cannot be written.
    """
    hours = first_whole_hours(landing)
    if hour > hours.get(cluster, 0):
        atomic_write(
            landing / NAME, partial(_write, orjson.dumps(hours | {cluster: hour}, option=orjson.OPT_SORT_KEYS))
        )


def _write(document: bytes, file: IO[bytes]) -> None:
    file.write(document)
