#!/usr/bin/env python3
"""Build a release: sdist, wheel, software bill of materials and checksums, the same bytes every time.

`scripts/release.py` builds the present version into dist/. `scripts/release.py 0.2.0` makes that version first: it
writes it into the code and the changelog, commits, and tags. Nothing is uploaded or pushed.
"""

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSION_FILE = ROOT / "ackscope/__init__.py"
CHANGELOG = ROOT / "CHANGELOG.md"
CHART = ROOT / "deploy/helm/ackscope/Chart.yaml"
MANIFESTS = [ROOT / f"deploy/kubernetes/{name}.yaml" for name in ("ackscope", "ackscope-discovery")]
SUMS = "SHA256SUMS"

EXPORTER_EXTRAS = ("notify", "otlp", "mcp")
"""Extras that belong to the exporter and are small: the requirements and the image of the exporter have them."""

# Tools write their version into what they build, so it is pinned; they run in environments of their own.
BACKEND = "hatchling==1.33.0"
SBOM_TOOL = "cyclonedx-bom==7.5.0"

_VERSION = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)
_UNRELEASED = "## Unreleased\n"


class ReleaseError(Exception):
    """The release cannot be made; one line that says why and what to do."""


def main() -> int:
    """Run the script; returns its exit code."""
    parser = argparse.ArgumentParser(description="Build the files of a release.")
    parser.add_argument("version", nargs="?", help="make this version (0.2.0): write, commit and tag it, then build")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "dist", help="folder to write to (default: dist)")
    args = parser.parse_args()
    try:
        print("release: building twice to compare, which takes a minute or more", file=sys.stderr)
        if args.version is not None:
            make_version(args.version)
        for path in build(args.output):
            print(f"{path.stat().st_size:>9}  {path}")
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0


def current_version() -> str:
    """The version in the code: the only place that has one."""
    found = _VERSION.search(VERSION_FILE.read_text())
    if found is None:
        raise ReleaseError(f"{VERSION_FILE}: has no __version__")
    return found[1]


def make_version(version: str) -> None:
    """Write a new version into code and changelog, commit and tag it.

    Raises:
        ReleaseError: the version is not newer, nothing is unreleased, or the checkout has changes.
    """
    before = current_version()
    if not re.fullmatch(r"\d+\.\d+\.\d+", version) or _numbers(version) <= _numbers(before):
        raise ReleaseError(f"{version!r} is not a version after {before}; use three numbers, such as 0.2.0")
    if _git("status", "--porcelain"):
        raise ReleaseError("the checkout has changes; commit or stash them")
    day = time.strftime("%Y-%m-%d", time.gmtime())
    CHANGELOG.write_text(released(CHANGELOG.read_text(), version, day))
    VERSION_FILE.write_text(_VERSION.sub(f'__version__ = "{version}"', VERSION_FILE.read_text()))
    # Helm reads no Python: the chart, and what is rendered from it, have a copy.
    CHART.write_text(re.sub(r"(?m)^(version|appVersion): .*$", rf"\1: {version}", CHART.read_text()))
    label = "app.kubernetes.io/version: "
    for file in MANIFESTS:
        file.write_text(file.read_text().replace(f'{label}"{before}"', f'{label}"{version}"'))
    _git("commit", "--all", "--message", f"release: {version}")
    _git("tag", "--annotate", f"v{version}", "--message", f"ackscope {version}")


def released(changelog: str, version: str, day: str) -> str:
    """The changelog with its unreleased part under the version, and an empty one above it.

    Raises:
        ReleaseError: nothing is unreleased.
    """
    _, found, rest = changelog.partition(_UNRELEASED)
    if not found or not rest.partition("\n## ")[0].strip():
        raise ReleaseError("CHANGELOG.md: nothing below `## Unreleased`; write what changed for users")
    return changelog.replace(_UNRELEASED, f"{_UNRELEASED}\n## {version} - {day}\n", 1)


def build(output: Path) -> list[Path]:
    """Build twice, compare, and keep one. Returns the files, checksums last.

    Raises:
        ReleaseError: a tool failed, or the two builds differ.
    """
    output.mkdir(parents=True, exist_ok=True)
    pins = {"exporter": runtime_lock("exporter"), "all": runtime_lock("all")}
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        first, second = _build_once(Path(one), pins), _build_once(Path(two), pins)
        different = [name for name in first if first[name] != second.get(name)]
        if different or first.keys() != second.keys():
            raise ReleaseError(f"two builds differ in {', '.join(different or ['their files'])}")
    for old in output.glob("ackscope-*"):
        old.unlink()
    for name, content in first.items():
        (output / name).write_bytes(content)
    sums = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in sorted(first.items()))
    (output / SUMS).write_text(sums)
    return [*sorted(output / name for name in first), output / SUMS]


def _build_once(folder: Path, pins: dict[str, str]) -> dict[str, bytes]:
    """Build into a folder, with `pins` by what they install. Returns file name -> content."""
    constraints = folder / "backend.txt"
    constraints.write_text(f"{BACKEND}\n")
    # The wheel is built from the sdist, so that the sdist is known to be complete.
    _run(_uv(), "build", "--quiet", "--build-constraints", str(constraints), "--out-dir", str(folder), str(ROOT))
    stem = folder / f"ackscope-{current_version()}"
    for name, lines in pins.items():
        Path(f"{stem}-requirements-{name}.txt").write_text(lines)
    listed = f"{stem}-requirements-all.txt"
    command = ["tool", "run", "--quiet", "--from", SBOM_TOOL, "cyclonedx-py", "requirements", listed]
    described = folder / "pyproject.toml"
    # The tool does not know dynamic versions.
    text = (ROOT / "pyproject.toml").read_text()
    described.write_text(text.replace('dynamic = ["version"]', f'version = "{current_version()}"'))
    options = ["--pyproject", str(described), "--output-reproducible", "--spec-version", "1.6", "--output-file"]
    _run(_uv(), *command, *options, f"{stem}.cdx.json")
    return {path.name: path.read_bytes() for path in sorted(folder.glob("ackscope-*"))}


def runtime_lock(what: str) -> str:
    """The pins of requirements.lock, with hashes, of what a user installs, without the tools of the tests.

    Args:
        what: "exporter" for the package with the extras of the exporter, "all" for all extras.

    Raises:
        ReleaseError: the lock lacks a package.
    """
    pins = {block.partition("==")[0].lower(): block for block in _blocks((ROOT / "requirements.lock").read_text())}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    chosen = [line for name, lines in extras.items() if what == "all" or name in EXPORTER_EXTRAS for line in lines]
    wanted = [*project["dependencies"], *(line for line in chosen if not line.startswith("ackscope["))]
    command = [_uv(), "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--no-emit-index-url"]
    options = ["--constraint", str(ROOT / "requirements.lock"), "--python-version", "3.11", "-"]
    listed = _run(*command, *options, stdin="\n".join(wanted))
    names = [line.partition("==")[0].strip().lower() for line in listed.splitlines() if "==" in line]
    missing = [name for name in names if name not in pins]
    if missing:
        raise ReleaseError(f"requirements.lock lacks {', '.join(missing)}; run: make lock")
    return "".join(f"{pins[name]}\n" for name in sorted(names))


def _blocks(lock: str) -> Iterator[str]:
    """Each pin with its hashes, as one text."""
    block: list[str] = []
    for line in lock.splitlines():
        if line and not line[0].isspace() and block:
            yield "\n".join(block)
            block = []
        block.append(line)
    yield "\n".join(block)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(word) for word in re.findall(r"\d+", version))


def _uv() -> str:
    return _run(str(ROOT / "scripts/uv.sh")).strip()


def _git(*words: str) -> str:
    return _run("git", "-C", str(ROOT), *words).strip()


def _epoch() -> str:
    """The time of the last commit, for every date inside the files."""
    return (
        os.environ.get("SOURCE_DATE_EPOCH")
        or subprocess.run(
            ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"], capture_output=True, text=True, check=True
        ).stdout.strip()
    )


def _run(*command: str, stdin: str | None = None) -> str:
    environ = {**os.environ, "SOURCE_DATE_EPOCH": _epoch(), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, env=environ, input=stdin, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:] or ["no output"]
        raise ReleaseError(f"{' '.join(command[:4])} ...: {last[0]}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
