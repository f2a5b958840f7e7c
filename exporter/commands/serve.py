"""`ackscope exporter`: watch brokers until told to stop."""

import argparse
from pathlib import Path

from ackscope.clock import SystemClock
from ackscope.settings import load
from exporter.settings import ExporterSettings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--config", metavar="FILE", type=Path, required=True, help="the YAML file; docs/configuration.md"
    )
    parser.add_argument("--check-config", action="store_true", help="say whether the file is good, and end")


def run(args: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT.

    Raises:
        ConfigError: the file is wrong.
        UsageError: the address to listen on is taken.
    """
    settings = load(ExporterSettings, args.config)
    if args.check_config:
        print(f"{args.config}: good; {describe(settings)}")
        return 0
    # Imported late: checking a file must not wait for Arrow and the HTTP parts.
    from exporter.app import App  # noqa: PLC0415  see above

    return App(settings, SystemClock()).run()


def describe(settings: ExporterSettings) -> str:
    """The settings in one line, without anything secret."""
    probed = [name for name, cluster in settings.clusters.items() if cluster.amqp is not None]
    probes = f"probes {', '.join(probed)}" if probed and settings.probes.enabled else "probes nothing"
    landing = f"lands in {settings.landing.directory}" if settings.landing.directory else "lands nothing"
    return f"listens on {settings.listen}; watches {', '.join(settings.clusters)}; {probes}; {landing}"
