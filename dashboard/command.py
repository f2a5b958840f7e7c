"""`ackscope dashboard`: check the options, then serve the dashboard until SIGTERM or Ctrl-C."""

import argparse
import ipaddress
import os
import re
import socket
from pathlib import Path
from urllib.parse import urlsplit

from ackscope.errors import UsageError
from ackscope.log import get_logger
from ackscope.object_path import ObjectPath, Place, place
from dashboard.auth.login_file import read
from dashboard.settings import NO_ROLLUPS, PageSettings

_LOG = get_logger(__name__)

_EXAMPLE = "http://127.0.0.1:9419"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--exporter", required=True, metavar="URL", help=f"URL of the exporter, such as {_EXAMPLE}")
    parser.add_argument(
        "--rollups", metavar="DIR", help="folder that the pipeline writes rollups to (default: the page has no history)"
    )
    parser.add_argument(
        "--semantics", metavar="FILE", help="output of `ackscope verify --json`, shown on the page Semantics"
    )
    parser.add_argument(
        "--notes",
        metavar="FILE",
        help="store incident notes in this file (default: no notes)",
    )
    parser.add_argument(
        "--listen", default="127.0.0.1:8501", metavar="HOST:PORT", help="address to listen on (default %(default)s)"
    )
    parser.add_argument(
        "--base-path",
        default="",
        metavar="PATH",
        help="path below which a reverse proxy serves the dashboard, such as /ops/ackscope (default: /)",
    )
    parser.add_argument(
        "--login",
        metavar="FILE",
        help="sign-in by OpenID Connect and access rules (default: open to everybody who can reach it)",
    )
    parser.add_argument(
        "--login-header",
        metavar="NAME",
        help="an authenticating proxy in front names the person in this header, such as X-Forwarded-Email",
    )


def run(args: argparse.Namespace) -> int:
    """Serve until a signal; returns 0.

    Raises:
        UsageError: an option is invalid, or the port is in use; nothing was started.
        ConfigError: the file of `--login`, or a file that it names, is invalid.
    """
    host, port = listen_address(args.listen)
    base = base_path(args.base_path)
    exporter, rollups = exporter_url(args.exporter), rollups_root(args.rollups)
    semantics, notes = semantics_file(args.semantics), notes_file(args.notes)
    login = None if args.login is None else read(Path(args.login).expanduser().absolute(), base)
    header = login_header(args.login_header, host, with_login=login is not None)
    settings = PageSettings(exporter, rollups, semantics, notes, None if login is None else login.rules, header)
    _check_free(host, port)
    if not settings.has_login and not is_loopback(host):
        _LOG.warning(
            "no --login: anybody who can reach the dashboard can read everything and run probes",
            listen=args.listen,
            writable="nothing" if notes is None else "notes",
        )
    os.environ.update(settings.to_environ())
    # Imported late: the server takes a second to import, and invalid options should fail at once.
    from dashboard.server import serve  # noqa: PLC0415

    serve(settings, host, port, base, login)
    return 0


def exporter_url(text: str) -> str:
    """Parse the URL of an exporter; the result has no trailing slash.

    Raises:
        UsageError: one line, with an example.
    """
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise UsageError(f"--exporter: not a URL ({error}); expected {_EXAMPLE}") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname or port == 0:
        raise UsageError(f"--exporter: {text!r} is not a URL; expected {_EXAMPLE}")
    if parts.username or parts.password:
        raise UsageError("--exporter: the exporter has no password; remove user and password from the URL")
    if parts.query or parts.fragment:
        raise UsageError(f"--exporter: remove ? and # from the URL; expected {_EXAMPLE}")
    return text.rstrip("/")


def rollups_root(text: str | None) -> Place:
    """Parse the directory of the rollups; it need not exist yet. `NO_ROLLUPS` without one.

    Raises:
        UsageError: the path is not a directory, or the URL is not usable.
    """
    if text is None:
        return NO_ROLLUPS
    root = place(text)
    if isinstance(root, ObjectPath):
        return root
    root = root.expanduser().absolute()
    if root.exists() and not root.is_dir():
        raise UsageError(f"--rollups: {root} is not a directory; give the one that `ackscope pipeline` writes to")
    return root


def semantics_file(text: str | None) -> Path | None:
    """Parse the path of a verify report, which must exist.

    Raises:
        UsageError: there is no such file.
    """
    if text is None:
        return None
    path = Path(text).expanduser().absolute()
    if not path.is_file():
        raise UsageError(
            f"--semantics: {path} does not exist; create it with: ackscope verify --amqp URL --json > FILE"
        )
    return path


def notes_file(text: str | None) -> Path | None:
    """Parse the path of the file for notes; it need not exist yet.

    Raises:
        UsageError: it cannot be written.
    """
    if text is None:
        return None
    path = Path(text).expanduser().absolute()
    folder = next((it for it in path.parents if it.exists()), path.parent)
    if path.is_dir() or not os.access(path if path.exists() else folder, os.W_OK):
        raise UsageError(f"--notes: {path} cannot be written; choose a file that this user can write to")
    return path


def login_header(text: str | None, host: str, *, with_login: bool) -> str | None:
    """Parse the name of the header that a proxy in front sets.

    Args:
        text: the option.
        host: the address to listen on. Anybody who reaches it directly can set the header, so it must be loopback.
        with_login: whether there is a `--login` as well.

    Raises:
        UsageError: it is not the name of a header, or the header could be forged.
    """
    if text is None:
        return None
    if not re.fullmatch(r"[A-Za-z0-9-]+", text):
        raise UsageError(f"--login-header: {text!r} is not the name of a header; expected X-Forwarded-Email")
    if with_login:
        raise UsageError("--login-header: give either this or --login; a proxy has already signed people in")
    if not is_loopback(host):
        raise UsageError(
            f"--login-header: with --listen {host} anybody could set the header and get access; "
            "run the proxy on the same host (or pod) and listen on 127.0.0.1"
        )
    return text


def base_path(text: str) -> str:
    """Parse the path below which a reverse proxy serves the dashboard; the result has no slash at its ends.

    Raises:
        UsageError: it is not a valid path.
    """
    path = text.strip("/")
    if path and not re.fullmatch(r"[A-Za-z0-9._~-]+(/[A-Za-z0-9._~-]+)*", path):
        raise UsageError(f"--base-path: {text!r} is not a path of letters, digits and - . _ ~; expected /ops/ackscope")
    return path


def listen_address(text: str) -> tuple[str, int]:
    """Parse `host:port`, `[v6]:port` or a port alone.

    Raises:
        UsageError: one line, with an example.
    """
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise UsageError(f"--listen: {text!r} is not host:port; expected 127.0.0.1:8501")
    return host, int(port)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address; of names, only localhost counts."""
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
                f"--listen: cannot listen on {host}:{port} ({reason}); choose another port, such as 127.0.0.1:8502"
            ) from None
