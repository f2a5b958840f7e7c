"""What the command tells the page: it starts the page's server, which runs the page with its own environment only."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ackscope.errors import ConfigError
from dashboard.auth.access_rules import AccessRules

_EXPORTER = "ACKSCOPE_DASHBOARD_EXPORTER"
_ROLLUPS = "ACKSCOPE_DASHBOARD_ROLLUPS"
_SEMANTICS = "ACKSCOPE_DASHBOARD_SEMANTICS"
_NOTES = "ACKSCOPE_DASHBOARD_NOTES"
_LOGIN = "ACKSCOPE_DASHBOARD_LOGIN"


@dataclass(frozen=True, slots=True)
class PageSettings:
    """Where the page reads, and who may see it.

    Attributes:
        exporter: address of the exporter, without a trailing slash.
        rollups: root of the rollup files; it need not exist yet.
        semantics: what `ackscope verify --json` printed; None where nobody kept it.
        notes: where notes are kept; None: nothing is ever written.
        login: who may see the page; None: everybody who reaches it.
    """

    exporter: str
    rollups: Path
    semantics: Path | None = None
    notes: Path | None = None
    login: AccessRules | None = None

    def to_environ(self) -> dict[str, str]:
        """The environment variables that carry them."""
        return {
            _EXPORTER: self.exporter,
            _ROLLUPS: str(self.rollups),
            _SEMANTICS: "" if self.semantics is None else str(self.semantics),
            _NOTES: "" if self.notes is None else str(self.notes),
            _LOGIN: "" if self.login is None else self.login.to_json(),
        }

    @classmethod
    def from_environ(cls, environ: Mapping[str, str] = os.environ) -> "PageSettings":
        """Read them back.

        Raises:
            ConfigError: the page was started by something else than its command.
        """
        try:
            semantics, notes = (Path(text) if (text := environ.get(name)) else None for name in (_SEMANTICS, _NOTES))
            # Nothing told is not "no login": a page that was started otherwise stays shut.
            login = AccessRules.from_json(text) if (text := environ[_LOGIN]) else None
            return cls(environ[_EXPORTER], Path(environ[_ROLLUPS]), semantics, notes, login)
        except KeyError as error:
            raise ConfigError(
                f"{error.args[0]} is not set; start the page with: ackscope dashboard --exporter URL --rollups DIR"
            ) from None
