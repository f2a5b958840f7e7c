"""`ackscope exporter`: watch brokers until told to stop."""

import argparse
import os
from functools import partial
from pathlib import Path

from ackscope.clock import SystemClock
from ackscope.settings import PREFIX, load
from ackscope.signals import Signals
from ackscope.tuning import tune
from exporter.runtime.run_loop import SIGNALS, run_service
from exporter.runtime.sd_notify import SystemdNotifier
from exporter.settings import ExporterSettings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--config", metavar="FILE", type=Path, required=True, help="the YAML file; docs/configuration.md"
    )
    parser.add_argument(
        "--web.config.file",
        dest="web_config",
        metavar="FILE",
        type=Path,
        help="TLS and logins of our own port, as Prometheus' exporters have them; wins over web_config",
    )
    parser.add_argument("--check-config", action="store_true", help="say whether the file is good, and end")


def run(args: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT; SIGHUP reads the file again.

    Raises:
        ConfigError: the file is wrong.
        UsageError: the address to listen on is taken.
    """
    reread = partial(_read, args.config, args.web_config)
    settings = reread()
    if args.check_config:
        print(f"{args.config}: good; {describe(settings)}")
        return 0
    # Imported late: checking a file must not wait for Arrow and the HTTP parts.
    from exporter.app import App  # noqa: PLC0415  see above

    tune()
    # Before all parts: a signal that comes while they are made must not end us halfway.
    signals, clock = Signals(SIGNALS), SystemClock()
    return run_service(App(settings, clock, reread), signals, SystemdNotifier.from_environ(), clock)


def _read(config: Path, web_config: Path | None) -> ExporterSettings:
    """The settings of the file, of the environment and of the command line."""
    overrides = {} if web_config is None else {f"{PREFIX}WEB_CONFIG": str(web_config)}
    return load(ExporterSettings, config, {**os.environ, **overrides})


def describe(settings: ExporterSettings) -> str:
    """The settings in one line, without anything secret."""
    probed = [name for name, cluster in settings.clusters.items() if cluster.amqp is not None]
    probes = f"probes {', '.join(probed)}" if probed and settings.probes.enabled else "probes nothing"
    landing = f"lands in {settings.landing.directory}" if settings.landing.directory else "lands nothing"
    watches = f"watches {', '.join(settings.clusters) or 'nothing'}"
    modules = [f"reads on demand by {', '.join(settings.modules)}"] if settings.modules else []
    return "; ".join([f"listens on {settings.listen}", watches, *modules, probes, landing])
