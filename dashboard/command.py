"""`ackscope dashboard`: check what was asked for, then serve the page until SIGTERM or Ctrl-C."""

import argparse
import os
import socket
from pathlib import Path
from urllib.parse import urlsplit

from ackscope.errors import UsageError
from dashboard.settings import PageSettings

_EXAMPLE = "http://127.0.0.1:9419"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--exporter", required=True, metavar="URL", help=f"address of the exporter, {_EXAMPLE}")
    parser.add_argument("--rollups", required=True, metavar="DIR", help="where the pipeline writes rollups")
    parser.add_argument(
        "--listen", default="127.0.0.1:8501", metavar="HOST:PORT", help="where to serve (default %(default)s)"
    )


def run(args: argparse.Namespace) -> int:
    """Serve until a signal; the result is 0.

    Raises:
        UsageError: an option is wrong, or the port is taken; nothing was started.
    """
    settings = PageSettings(exporter_url(args.exporter), rollups_root(args.rollups))
    host, port = listen_address(args.listen)
    _check_free(host, port)
    os.environ.update(settings.to_environ())
    # Only now: importing the server takes a second, and bad input should not wait for it.
    from dashboard.server import serve  # noqa: PLC0415

    serve(settings, host, port)
    return 0


def exporter_url(text: str) -> str:
    """Read the address of an exporter; the result has no trailing slash.

    Raises:
        UsageError: in one line, with an example.
    """
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise UsageError(f"--exporter: not an address ({error}); expected {_EXAMPLE}") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname or port == 0:
        raise UsageError(f"--exporter: {text!r} is not an address; expected {_EXAMPLE}")
    if parts.username or parts.password:
        raise UsageError("--exporter: the exporter asks for no password; leave user and password out")
    if parts.query or parts.fragment:
        raise UsageError(f"--exporter: give the address only, without ? and #; expected {_EXAMPLE}")
    return text.rstrip("/")


def rollups_root(text: str) -> Path:
    """Read the directory of the rollups; it need not exist yet.

    Raises:
        UsageError: it is something else than a directory.
    """
    root = Path(text).expanduser().absolute()
    if root.exists() and not root.is_dir():
        raise UsageError(f"--rollups: {root} is not a directory; give the one that `ackscope pipeline` writes to")
    return root


def listen_address(text: str) -> tuple[str, int]:
    """Read `host:port`, `[v6]:port` or a bare port.

    Raises:
        UsageError: in one line, with an example.
    """
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise UsageError(f"--listen: {text!r} is not host:port; expected 127.0.0.1:8501")
    return host, int(port)


def _check_free(host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((host, port))
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise UsageError(
                f"--listen: cannot listen on {host}:{port} ({reason}); give another, such as --listen 127.0.0.1:8502"
            ) from None
