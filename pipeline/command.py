"""`ackscope pipeline`: landing files to rollups, and what they tell; each job is a file in `pipeline/verbs`."""

import argparse

from pipeline.verbs import VERBS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the jobs and their options."""
    verbs = parser.add_subparsers(dest="verb", metavar="JOB", required=True)
    for name, verb in VERBS.items():
        verb.add_arguments(verbs.add_parser(name, help=verb.HELP))


def run(args: argparse.Namespace) -> int:
    """Do the chosen job."""
    return VERBS[args.verb].run(args)
