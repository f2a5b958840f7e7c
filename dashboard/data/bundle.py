"""A bundle of one cluster: what the exporter holds of it, as a file. A failure is an answer too."""

import re
from dataclasses import dataclass

import requests

from dashboard.data.exporter_client import NEIGHBOUR, failure

MOST = 256 * 2**20
"""Bytes; a bundle of 10,000 queues has a few."""
_TIMEOUTS = (1.0, 60.0)
_NAME = re.compile(r'filename="([\w.-]+)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleFile:
    """The file.

    Attributes:
        problem: why there is none.
    """

    name: str = ""
    content: bytes = b""
    problem: str | None = None


def read(url: str, cluster: str) -> BundleFile:
    """Ask the exporter for it, which takes out what looks like a secret; nothing is raised for what it does."""
    try:
        with requests.get(
            f"{url}/api/v1/bundle", params={"cluster": cluster}, timeout=_TIMEOUTS, stream=True, **NEIGHBOUR
        ) as response:
            if response.status_code != 200:
                return BundleFile(problem=f"HTTP status {response.status_code} at /api/v1/bundle")
            pieces, size = [], 0
            for piece in response.iter_content(2**16):
                size += len(piece)
                if size > MOST:
                    return BundleFile(problem=f"it has more than {MOST // 2**20} MiB: use `ackscope bundle`")
                pieces.append(piece)
    except requests.RequestException as error:
        return BundleFile(problem=failure(error))
    named = _NAME.search(response.headers.get("content-disposition", ""))
    return BundleFile(name=named[1] if named else "cluster.ackscope", content=b"".join(pieces))
