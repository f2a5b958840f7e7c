"""The file of options for object storage: credentials and endpoint as `name = value` lines, beside the environment."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from ackscope.errors import DataError

OPTIONS_FILE = "ACKSCOPE_STORAGE_FILE"
"""The variable that names it."""

_read_options: dict[tuple[str, int], dict[str, str]] = {}


def current_options() -> tuple[dict[str, str], int]:
    """The options of the file, and when it was changed in nanoseconds since 1970; nothing and 0 without a file.

    Raises:
        DataError: it cannot be read.
    """
    file = os.environ.get(OPTIONS_FILE)
    if not file:
        return {}, 0
    try:
        changed = Path(file).stat().st_mtime_ns
        if (file, changed) not in _read_options:
            _read_options.clear()
            _read_options[file, changed] = _options(file)
        return dict(_read_options[file, changed]), changed
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror}); {OPTIONS_FILE} names it") from None


def client_settings() -> dict[str, str]:
    """What the client of another library needs beyond the environment: the options, and whether TLS is off.

    Raises:
        DataError: the file cannot be read.
    """
    found = {name.upper(): value for name, value in current_options()[0].items()}
    return found | ({"ALLOW_HTTP": "true"} if is_plain(found) else {})


def is_plain(options: Mapping[str, str]) -> bool:
    """Whether an endpoint without TLS is named, in these options or in the environment."""
    named = (value for name, value in options.items() if "endpoint" in name.lower())
    return any(it.startswith("http://") for it in (*named, *_endpoints()))


def _options(file: str) -> dict[str, str]:
    lines = [line.strip() for line in Path(file).read_text(encoding="utf-8").splitlines()]
    pairs = [line.partition("=") for line in lines if line and not line.startswith(("#", "["))]
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


def _endpoints() -> Iterator[str]:
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"):
        if os.environ.get(name):
            yield os.environ[name]
