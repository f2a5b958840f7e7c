"""Download of a bundle: the exporter's data of one cluster as a file. Failures are part of the result."""

import re
from dataclasses import dataclass

import requests

from dashboard.data.exporter_client import REQUEST_OPTIONS, failure

# Bytes; a bundle of 10,000 queues has a few MiB.
MAX_BYTES = 256 * 2**20
_TIMEOUTS = (1.0, 60.0)
_NAME = re.compile(r'filename="([\w.-]+)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleFile:
    """A bundle as a file.

    Attributes:
        problem: why there is no bundle; None if there is one.
    """

    name: str = ""
    content: bytes = b""
    problem: str | None = None


def read(url: str, cluster: str) -> BundleFile:
    """Download the bundle from the exporter, which removes everything that looks like a secret; never raises."""
    try:
        with requests.get(
            f"{url}/api/v1/bundle", params={"cluster": cluster}, timeout=_TIMEOUTS, stream=True, **REQUEST_OPTIONS
        ) as response:
            if response.status_code != 200:
                return BundleFile(problem=f"HTTP status {response.status_code} at /api/v1/bundle")
            pieces, size = [], 0
            for piece in response.iter_content(2**16):
                size += len(piece)
                if size > MAX_BYTES:
                    return BundleFile(problem=f"it is larger than {MAX_BYTES // 2**20} MiB; use `ackscope bundle`")
                pieces.append(piece)
    except requests.RequestException as error:
        return BundleFile(problem=failure(error))
    named = _NAME.search(response.headers.get("content-disposition", ""))
    return BundleFile(name=named[1] if named else "cluster.ackscope", content=b"".join(pieces))
