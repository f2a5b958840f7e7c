"""The command line `ackscope <command>`. The package of a command is imported only when the command runs."""

import argparse
import importlib
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import NamedTuple

from ackscope import __version__
from ackscope.cli import Command, Parser, nearest
from ackscope.errors import EXIT_COULD_NOT, AckscopeError
from ackscope.log import FORMATS, LEVELS, redact, setup_logging
from ackscope.printable import PrintableStream, printable


class Entry(NamedTuple):
    """A command: its module, its one-line summary, and the optional dependencies that it needs."""

    module: str
    summary: str
    extra: str | None = None


COMMANDS = {
    "exporter": Entry("exporter.commands.serve", "monitor brokers: /metrics, findings, probes, landing files"),
    "init": Entry("exporter.commands.init", "write a configuration for a broker, and make the users that it needs"),
    "probe": Entry("probes.command", "run one probe now and print what a client experiences"),
    "verify": Entry("lab.verify.command", "check the documented ack/confirm semantics against a live broker"),
    "diagnose": Entry("exporter.commands.diagnose", "diagnose a cluster once: what is wrong, why, and what to do"),
    "runbook": Entry("exporter.commands.runbook", "print the runbook of a rule"),
    "bundle": Entry(
        "exporter.commands.bundle", "save the input of diagnosis, to diagnose it without access to the broker"
    ),
    "notify": Entry("exporter.commands.notify", "send a test notification to the receivers of findings"),
    "mcp": Entry("exporter.commands.mcp", "answer language models and other tools (MCP)", "mcp"),
    "pipeline": Entry("pipeline.command", "run the Spark jobs that compute rollups from landing files", "pipeline"),
    "dashboard": Entry("dashboard.command", "serve the web page", "dashboard"),
    "files": Entry("exporter.commands.files", "write rules, dashboards, units and manifests that come with ackscope"),
    "lab": Entry("lab.command", "run a private RabbitMQ, and inject faults into it"),
    "demo": Entry("lab.demo.command", "run a private broker with a workload and every part of ackscope"),
}


def _parser() -> Parser:
    parser = Parser(
        prog="ackscope",
        description="Tell the engineer on call what is wrong with a RabbitMQ cluster, where, why, and what to do next.",
        epilog="\n".join(["commands:", *(f"  {name:<10} {entry.summary}" for name, entry in COMMANDS.items())]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"ackscope {__version__}")
    parser.add_argument(
        "command", metavar="command", help="one of the commands below; `ackscope COMMAND --help` shows its options"
    )
    parser.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def _run(argv: Sequence[str]) -> int:
    front = _parser()
    if not argv:
        front.print_help(sys.stderr)
        return EXIT_COULD_NOT
    chosen = front.parse_args(argv)
    entry = COMMANDS.get(chosen.command)
    if entry is None:
        front.error(f"unknown command {chosen.command!r}{nearest(chosen.command, list(COMMANDS))}")
    try:
        module: Command = importlib.import_module(entry.module)
        args = command_parser(chosen.command, module).parse_args(chosen.rest)
        setup_logging(args.log_level, args.log_format)
        with redirect_stdout(PrintableStream(sys.stdout)):
            return module.run(args)
    except ModuleNotFoundError as error:
        missing = (error.name or "").split(".")[0]
        if entry.extra is None or missing in {entry.module.split(".")[0], "ackscope"}:
            raise
        front.exit(
            EXIT_COULD_NOT,
            f"ackscope {chosen.command}: needs {error.name}, which is not installed; "
            f"install the extra: pip install 'ackscope[{entry.extra}]'\n",
        )


def command_parser(name: str, module: Command) -> Parser:
    """The parser of one command, with the options that all commands share."""
    summary = COMMANDS[name].summary
    parser = Parser(prog=f"ackscope {name}", description=summary[0].upper() + summary[1:] + ".")
    parser.add_argument("--log.level", "--log-level", dest="log_level", choices=LEVELS, default="info")
    parser.add_argument(
        "--log.format",
        dest="log_format",
        choices=FORMATS,
        default="logfmt",
        help="logfmt for people, json for log collectors",
    )
    module.add_arguments(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. An `AckscopeError` is printed as one line on stderr."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        return _run(words)
    except AckscopeError as error:
        name = words[0] if words and words[0] in COMMANDS else ""
        print(printable(f"ackscope {name}: {redact(str(error))}".replace(" :", ":")), file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of the output closed the pipe (`| head`), which is not an error.
        sys.stderr.close()
        return 0


if __name__ == "__main__":
    sys.exit(main())
