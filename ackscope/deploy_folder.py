"""Where the files of `deploy/` are: inside an installed package, or at the top of a checkout."""

from pathlib import Path

_INSTALLED = Path(__file__).parent / "deploy"

DEPLOY = _INSTALLED if _INSTALLED.is_dir() else Path(__file__).parents[1] / "deploy"
"""Folder with Prometheus rules, Grafana dashboards, systemd units and the files for containers."""
