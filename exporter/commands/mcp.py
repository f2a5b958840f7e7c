"""`ackscope mcp`: findings for language models and other programs, by the Model Context Protocol."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
from pydantic import SecretStr

from ackscope import cli
from ackscope.address import parse_management
from ackscope.errors import UsageError
from ackscope.settings import secret
from diagnosis.thresholds import Thresholds
from exporter.api.bundle import DiagnosisBundle, judge
from exporter.api.documents import as_json, cluster_findings
from exporter.commands.diagnose import two_looks
from exporter.commands.observer import observe
from exporter.mcp_server.api import ExporterApi
from exporter.mcp_server.server import LOOPBACK, PATH, make_server, serve_http, serve_stdio
from exporter.mcp_server.tools import ToolBox
from exporter.settings import parse_listen
from exporter.web.config import WebConfig

_EXAMPLE = "http://127.0.0.1:9419"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--exporter", metavar="URL", default=_EXAMPLE, help=f"address of the exporter (default: {_EXAMPLE})"
    )
    parser.add_argument("--username", metavar="NAME", help="login of the exporter, if it has users")
    parser.add_argument("--password-file", metavar="FILE", type=Path, help="file whose first line is the password")
    parser.add_argument("--ca-file", metavar="FILE", type=Path, help="CA certificates to trust for the exporter")
    parser.add_argument(
        "--rollups", metavar="DIR", type=cli.folder, help="results of the pipeline, for the tool history"
    )
    parser.add_argument("--bundles", metavar="DIR", type=Path, help="folder in which the tool bundle writes its files")
    parser.add_argument(
        "--management", metavar="URL", help="http://user:password@host:15672; adds the tool diagnose for this broker"
    )
    parser.add_argument(
        "--http",
        metavar="HOST:PORT",
        help=f"serve streamable HTTP at {PATH} instead of stdio; not only on loopback, it needs --web.config.file",
    )
    parser.add_argument(
        "--web.config.file",
        dest="web_config",
        metavar="FILE",
        type=Path,
        help="Prometheus web configuration file: TLS and users of the HTTP port, the same file as the exporter's",
    )


def run(args: argparse.Namespace) -> int:
    """Serve until the client or a signal ends it.

    Raises:
        UsageError: an option is wrong.
        ConfigError: a file cannot be used.
    """
    for name in ("rollups", "bundles"):
        folder = getattr(args, name)
        if folder is not None and not folder.is_dir():
            raise UsageError(f"--{name}: {folder} is not a directory")
    if not args.exporter.startswith(("http://", "https://")) or "@" in args.exporter:
        raise UsageError(f"--exporter: give its URL without user and password, such as {_EXAMPLE}")
    password = secret(None, args.password_file, "--password-file")
    if (args.username is None) != (password is None):
        raise UsageError("--username and --password-file belong together; give both")
    if args.management is not None:
        parse_management(args.management)
    tools = ToolBox(
        api=ExporterApi(args.exporter, (args.username, password) if password is not None else None, args.ca_file),
        rollups=args.rollups,
        bundles=args.bundles,
        broker=None if args.management is None else _fresh(SecretStr(args.management)),
    )
    server = make_server(tools)
    if args.http is None:
        serve_stdio(server)
        return 0
    try:
        listen = parse_listen(args.http)
    except ValueError as error:
        raise UsageError(f"--http: {error}") from None
    web = WebConfig(args.web_config)
    if listen[0] not in LOOPBACK and not web.has_users:
        raise UsageError(
            f"--http: {listen[0]} is not loopback, and everybody there could read all findings; name users in "
            "--web.config.file"
        )
    serve_http(server, listen, web)
    return 0


def _fresh(management: SecretStr) -> Callable[[], dict[str, Any]]:
    """Makes a fresh diagnosis of this broker: its entry as in `/api/v1/findings`."""

    def diagnosis() -> dict[str, Any]:
        with observe(management.get_secret_value(), None) as look:
            two_looks(look, 15.0)
            seen = DiagnosisBundle(window=look.window, outcomes=(), now=look.clock.now(), thresholds=Thresholds.brief())
            verdict = judge(seen)
            entry = cluster_findings(verdict.cluster, look.window.latest, verdict, seen.now, look.management)
        found: dict[str, Any] = orjson.loads(as_json(entry))
        return found

    return diagnosis
