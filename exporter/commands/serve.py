"""`ackscope exporter`: monitor brokers until stopped."""

import argparse
import os
from functools import partial
from pathlib import Path

from ackscope.clock import SystemClock
from ackscope.settings import PREFIX, load
from ackscope.tuning import tune
from ackscope.unix_signals import UnixSignals
from exporter.runtime.run_loop import SIGNALS, run_service
from exporter.runtime.sd_notify import SystemdNotifier
from exporter.settings import ExporterSettings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--config.file",
        "--config",
        dest="config",
        metavar="FILE",
        type=Path,
        required=True,
        help="YAML configuration file; see docs/configuration.md",
    )
    parser.add_argument(
        "--web.listen-address",
        dest="listen",
        metavar="HOST:PORT",
        help="address to serve; overrides listen. An empty host means all interfaces",
    )
    parser.add_argument(
        "--web.config.file",
        dest="web_config",
        metavar="FILE",
        type=Path,
        help="Prometheus web configuration file: TLS and basic auth of the exporter's own port; overrides web_config",
    )
    parser.add_argument("--check-config", action="store_true", help="validate the configuration and exit")


def run(args: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT; SIGHUP reloads the file.

    Raises:
        ConfigError: the file is invalid.
        UsageError: the listen address cannot be used.
    """
    reread = partial(_read, args.config, args.listen, args.web_config)
    settings = reread()
    if args.check_config:
        print(f"{args.config}: valid; {describe(settings)}")
        return 0
    # Imported late: validating a file must not wait for Arrow and the HTTP parts.
    from exporter.app import App  # noqa: PLC0415  see above

    tune()
    # Before all parts are built: an early signal must not kill a half-built service.
    signals, clock = UnixSignals(SIGNALS), SystemClock()
    return run_service(App(settings, clock, reread), signals, SystemdNotifier.from_environ(), clock)


def _read(config: Path, listen: str | None, web_config: Path | None) -> ExporterSettings:
    """Read the settings from the file, the environment and the command line; later ones override earlier ones."""
    overrides = {}
    if listen is not None:
        overrides[f"{PREFIX}LISTEN"] = f"0.0.0.0{listen}" if listen.startswith(":") else listen  # noqa: S104  the user asks for all of them
    if web_config is not None:
        overrides[f"{PREFIX}WEB_CONFIG"] = str(web_config)
    return load(ExporterSettings, config, {**os.environ, **overrides})


def describe(settings: ExporterSettings) -> str:
    """One-line summary of the settings, without secrets."""
    probed = [name for name, cluster in settings.clusters.items() if cluster.amqp is not None]
    probes = f"probes {', '.join(probed)}" if probed and settings.probes.enabled else "no probes"
    landing = f"landing files in {settings.landing.directory}" if settings.landing.directory else "no landing files"
    receivers = [f"notifies {', '.join(settings.delivery.receivers)}"] if settings.delivery.receivers else []
    found = settings.discovery.kubernetes
    places = ", ".join(found.namespaces) or "all namespaces"
    names = [*settings.clusters, *([f"RabbitmqCluster objects in {places}"] if found.enabled else [])]
    watches = f"monitors {', '.join(names) or 'nothing'}"
    modules = [f"on-demand modules {', '.join(settings.modules)}"] if settings.modules else []
    return "; ".join([f"listens on {settings.listen}", watches, *modules, probes, landing, *receivers])
