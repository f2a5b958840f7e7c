"""`ackscope dashboard`: check what was asked for, then serve the page until SIGTERM or Ctrl-C."""

import argparse
import ipaddress
import logging
import os
import re
import socket
from pathlib import Path
from urllib.parse import urlsplit

from ackscope.errors import UsageError
from dashboard.auth.login_file import read
from dashboard.settings import PageSettings

_LOG = logging.getLogger(__name__)

_EXAMPLE = "http://127.0.0.1:9419"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--exporter", required=True, metavar="URL", help=f"address of the exporter, {_EXAMPLE}")
    parser.add_argument("--rollups", required=True, metavar="DIR", help="where the pipeline writes rollups")
    parser.add_argument(
        "--semantics", metavar="FILE", help="what `ackscope verify --json` printed, for the page Semantics"
    )
    parser.add_argument(
        "--notes", metavar="FILE", help="keep notes of incidents here (default: none are kept, the page only reads)"
    )
    parser.add_argument(
        "--listen", default="127.0.0.1:8501", metavar="HOST:PORT", help="where to serve (default %(default)s)"
    )
    parser.add_argument(
        "--base-path",
        default="",
        metavar="PATH",
        help="where a proxy in front of it serves the page, such as /ops/ackscope (default: /)",
    )
    parser.add_argument(
        "--login", metavar="FILE", help="who may see the page, by OpenID Connect (default: whoever reaches it)"
    )


def run(args: argparse.Namespace) -> int:
    """Serve until a signal; the result is 0.

    Raises:
        UsageError: an option is wrong, or the port is taken; nothing was started.
        ConfigError: the file of `--login`, or one that it names, is wrong.
    """
    host, port = listen_address(args.listen)
    base = base_path(args.base_path)
    exporter, rollups = exporter_url(args.exporter), rollups_root(args.rollups)
    semantics, notes = kept_file(args.semantics), notes_file(args.notes)
    login = None if args.login is None else read(Path(args.login).expanduser().absolute(), base)
    settings = PageSettings(exporter, rollups, semantics, notes, None if login is None else login.rules)
    _check_free(host, port)
    if login is None and not is_loopback(host):
        _LOG.warning(
            "no --login: whoever reaches %s can read everything here and run probes; nothing can be written%s",
            args.listen,
            "" if notes is None else " but notes",
        )
    os.environ.update(settings.to_environ())
    # Only now: importing the server takes a second, and bad input should not wait for it.
    from dashboard.server import serve  # noqa: PLC0415

    serve(settings, host, port, base, login)
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


def kept_file(text: str | None) -> Path | None:
    """Read the name of a file that must be there.

    Raises:
        UsageError: it is not.
    """
    if text is None:
        return None
    path = Path(text).expanduser().absolute()
    if not path.is_file():
        raise UsageError(f"--semantics: {path} is no file; make it with: ackscope verify --amqp URL --json > FILE")
    return path


def notes_file(text: str | None) -> Path | None:
    """Read the name of a file for notes; it need not be there yet.

    Raises:
        UsageError: it cannot be written.
    """
    if text is None:
        return None
    path = Path(text).expanduser().absolute()
    folder = next((it for it in path.parents if it.exists()), path.parent)
    if path.is_dir() or not os.access(path if path.exists() else folder, os.W_OK):
        raise UsageError(f"--notes: {path} cannot be written; give a file in a folder of this user")
    return path


def base_path(text: str) -> str:
    """Read the path that a proxy serves the page under; the result has no slash at its ends.

    Raises:
        UsageError: it is no path.
    """
    path = text.strip("/")
    if path and not re.fullmatch(r"[A-Za-z0-9._~-]+(/[A-Za-z0-9._~-]+)*", path):
        raise UsageError(f"--base-path: {text!r} is no path of letters, digits and - . _ ~; expected /ops/ackscope")
    return path


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


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it; a name other than localhost may be anybody's."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


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
