"""The command `ackscope pipeline`; each job is a module in `pipeline/cli`."""

import argparse

from pipeline.cli import COMMANDS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the jobs and their options."""
    jobs = parser.add_subparsers(dest="verb", metavar="JOB", required=True)
    for name, command in COMMANDS.items():
        command.add_arguments(jobs.add_parser(name, help=command.HELP))


def run(args: argparse.Namespace) -> int:
    """Run the chosen job."""
    return COMMANDS[args.verb].run(args)
