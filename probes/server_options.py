"""The options for the broker's AMQP address, shared by all commands that are AMQP clients."""

import argparse
from pathlib import Path

from pydantic import ValidationError

from ackscope.errors import UsageError
from ackscope.settings import secret
from probes.settings import AmqpServer, AmqpSettings

AMQP_HELP = "amqp://user:password@host:5672/vhost, or amqps://; prefer --password-file for the password"


def add_server_options(parser: argparse.ArgumentParser) -> None:
    """Declare all options except `--amqp`, for which a command may have alternatives."""
    parser.add_argument("--password-file", type=Path, help="file whose first line is the password")
    parser.add_argument("--ca-file", type=Path, help="PEM file of the CA that signed the broker's certificate")
    parser.add_argument("--no-verify", action="store_true", help="do not verify the broker's certificate")


def server_of(args: argparse.Namespace) -> AmqpServer:
    """Return the broker that the options name, with its credentials resolved.

    Raises:
        UsageError: an option is invalid, or conflicts with another.
        ConfigError: the password file cannot be read.
    """
    password = secret(None, args.password_file, "--password-file")
    if args.amqp.startswith("amqp://") and (args.ca_file or args.no_verify):
        raise UsageError("--ca-file and --no-verify: only for TLS; use an amqps:// address")
    try:
        settings = AmqpSettings.model_validate(
            {
                "url": args.amqp,
                "password": password,
                "ca_file": args.ca_file,
                "verify": not args.no_verify,
                # Only `ackscope probe` has this option.
                "stream_port": getattr(args, "stream_port", None),
            }
        )
    except ValidationError as error:
        first = error.errors()[0]
        option = "--stream-port" if first["loc"] == ("stream_port",) else "--amqp"
        raise UsageError(f"{option}: {first['msg'].removeprefix('Value error, ')}") from None
    return settings.server()
