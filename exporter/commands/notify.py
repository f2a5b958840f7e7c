"""`ackscope notify`: send a test notification to the receivers of a configuration."""

import argparse
from pathlib import Path

from ackscope.cli import nearest
from ackscope.clock import SystemClock
from ackscope.errors import EXIT_COULD_NOT, ConfigError, UsageError
from ackscope.settings import load
from exporter.delivery.delivery import make_receiver
from exporter.delivery.messages import trial_message
from exporter.delivery.receivers.contract import DeliveryError
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
        help="YAML configuration file of the exporter",
    )
    parser.add_argument("--receiver", metavar="NAME", help="only this receiver; without it, all of them")


def run(args: argparse.Namespace) -> int:
    """Send one message to each receiver, print a line for each, and return 3 if one did not accept it.

    Raises:
        ConfigError: the file is invalid or has no receiver.
        UsageError: there is no such receiver.
    """
    settings = load(ExporterSettings, args.config).delivery
    if not settings.receivers:
        raise ConfigError(f"{args.config}: no receiver configured; add delivery.receivers (docs/delivery.md)")
    if args.receiver is not None and args.receiver not in settings.receivers:
        hint = nearest(args.receiver, list(settings.receivers))
        raise UsageError(f"no receiver {args.receiver!r}{hint}; known: {', '.join(settings.receivers)}")
    clock, code = SystemClock(), 0
    for name, receiver in settings.receivers.items():
        if args.receiver in {None, name}:
            try:
                make_receiver(receiver, settings.external_url, clock).deliver(trial_message(name, clock.now()))
            except DeliveryError as error:
                print(f"{name} ({receiver.kind}): not delivered: {error}")
                code = EXIT_COULD_NOT
            else:
                print(f"{name} ({receiver.kind}): accepted")
    return code
