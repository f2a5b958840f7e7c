"""`ackscope files`: write the files for administrators that come with ackscope (rules, dashboards, units, chart)."""

import argparse
import shutil
from pathlib import Path

from ackscope.cli import nearest, print_json
from ackscope.deploy_folder import DEPLOY
from ackscope.errors import DataError, UsageError

SETS = {
    "prometheus": "scrape configuration, alert and recording rules, with their promtool tests",
    "grafana": "dashboards to import",
    "systemd": "units for exporter, pipeline and dashboard, with an example configuration",
    "image": "Containerfile of the images",
    "compose": "RabbitMQ, ackscope, Prometheus, Alertmanager and Grafana for docker compose",
    "helm": "chart for Kubernetes",
    "kubernetes": "plain manifests, rendered from the chart",
    "spark": "the pipeline on a Spark cluster: standalone, YARN, Kubernetes with the Spark operator",
}
"""Folder of `deploy/` -> what is in it."""

ALL = "all"

# Scripts that make files of a checkout from others.
_BUILD = "build.py"
_UNWANTED = shutil.ignore_patterns("__pycache__", _BUILD)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help=f"one of {', '.join(SETS)}, or all; without it, list them"
    )
    parser.add_argument("-o", "--output", metavar="DIR", type=Path, help="write them into this folder")
    parser.add_argument("--force", action="store_true", help="overwrite existing files")
    parser.add_argument("--json", action="store_true", help="print the result as a JSON document")


def run(args: argparse.Namespace) -> int:
    """List the sets, list the files of one set, or write them. Returns 0.

    Raises:
        UsageError: there is no such set, or files exist already.
        DataError: the files cannot be written.
    """
    if args.name is None:
        if args.output is not None:
            raise UsageError(f"--output: name what to write: {', '.join(SETS)}")
        _print([{"name": name, "contains": text} for name, text in SETS.items()], as_json=args.json)
        return 0
    if args.name == ALL and args.output is None:
        raise UsageError("all: name a folder with --output; each set becomes a folder in it")
    if args.name not in {*SETS, ALL}:
        raise UsageError(f"{args.name!r} is unknown{nearest(args.name, list(SETS))}; known: {', '.join(SETS)}")
    files = files_of(args.name)
    if args.output is None:
        _print([{"name": name, "contains": str(DEPLOY / args.name / name)} for name in files], as_json=args.json)
        return 0
    _write(args.name, files, args.output, force=args.force)
    if args.json:
        print_json({"folder": str(args.output), "files": files})
    else:
        print(f"{args.output}: {len(files)} files of {args.name}")
    return 0


def files_of(name: str) -> list[str]:
    """Paths of the files of a set, relative to its folder, in order."""
    folder = _folder(name)
    paths = (path for path in folder.rglob("*") if path.is_file() and path.name != _BUILD and path.suffix != ".pyc")
    return sorted(str(path.relative_to(folder)) for path in paths)


def _folder(name: str) -> Path:
    return DEPLOY if name == ALL else DEPLOY / name


def _write(name: str, files: list[str], output: Path, *, force: bool) -> None:
    existing = next((output / file for file in files if (output / file).exists()), None)
    if existing is not None and not force:
        raise UsageError(f"{existing}: already exists; choose another folder, or overwrite with --force")
    try:
        shutil.copytree(_folder(name), output, ignore=_UNWANTED, dirs_exist_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise DataError(f"{output}: cannot be written ({reason}); choose a folder of yours") from None


def _print(rows: list[dict[str, str]], *, as_json: bool) -> None:
    if as_json:
        print_json(rows)
        return
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        print(f"{row['name']:<{width}}  {row['contains']}")
