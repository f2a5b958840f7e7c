"""Settings of the pages: the command passes them in environment variables, because Streamlit runs the script itself."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ackscope.errors import ConfigError
from ackscope.object_path import Place, place
from dashboard.auth.access_rules import AccessRules

_EXPORTER = "ACKSCOPE_DASHBOARD_EXPORTER"
_ROLLUPS = "ACKSCOPE_DASHBOARD_ROLLUPS"
_SEMANTICS = "ACKSCOPE_DASHBOARD_SEMANTICS"
_NOTES = "ACKSCOPE_DASHBOARD_NOTES"
_LOGIN = "ACKSCOPE_DASHBOARD_LOGIN"
_LOGIN_HEADER = "ACKSCOPE_DASHBOARD_LOGIN_HEADER"

NO_ROLLUPS = Path("/nonexistent")
"""Stands for the folder of rollups without `--rollups`: readers find nothing, as in a folder that does not exist."""


@dataclass(frozen=True, slots=True)
class PageSettings:
    """Where the pages read their data, and who may see them.

    Attributes:
        exporter: URL of the exporter, without a trailing slash.
        rollups: root of the rollup files; it need not exist yet. `NO_ROLLUPS`: the page shows no history.
        semantics: output of `ackscope verify --json`; None if there is none.
        notes: file of the notes; None: nothing is ever written.
        login: access rules of people who sign in at a provider; None: no sign-in at a provider.
        login_header: header in which an authenticating proxy in front names the person; None: there is no such proxy.
    """

    exporter: str
    rollups: Place = NO_ROLLUPS
    semantics: Path | None = None
    notes: Path | None = None
    login: AccessRules | None = None
    login_header: str | None = None

    @property
    def has_rollups(self) -> bool:
        """Whether the page was started with a folder of rollups."""
        return self.rollups != NO_ROLLUPS

    @property
    def has_login(self) -> bool:
        """Whether people sign in, here or at a proxy in front."""
        return self.login is not None or self.login_header is not None

    def to_environ(self) -> dict[str, str]:
        """The settings as environment variables."""
        return {
            _EXPORTER: self.exporter,
            _ROLLUPS: str(self.rollups),
            _SEMANTICS: "" if self.semantics is None else str(self.semantics),
            _NOTES: "" if self.notes is None else str(self.notes),
            _LOGIN: "" if self.login is None else self.login.to_json(),
            _LOGIN_HEADER: self.login_header or "",
        }

    @classmethod
    def from_environ(cls, environ: Mapping[str, str] = os.environ) -> "PageSettings":
        """The settings from `to_environ`.

        Raises:
            ConfigError: the page was not started by `ackscope dashboard`.
        """
        try:
            semantics, notes = (Path(text) if (text := environ.get(name)) else None for name in (_SEMANTICS, _NOTES))
            # A missing variable does not mean "no login": a page started in another way stays closed.
            login = AccessRules.from_json(text) if (text := environ[_LOGIN]) else None
            login_header = environ[_LOGIN_HEADER] or None
            return cls(environ[_EXPORTER], place(environ[_ROLLUPS]), semantics, notes, login, login_header)
        except KeyError as error:
            raise ConfigError(
                f"{error.args[0]} is not set; start the page with: ackscope dashboard --exporter URL"
            ) from None
