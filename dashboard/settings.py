"""What the command tells the page: it starts the page's server, which runs the page with its own environment only."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ackscope.errors import ConfigError

_EXPORTER = "ACKSCOPE_DASHBOARD_EXPORTER"
_ROLLUPS = "ACKSCOPE_DASHBOARD_ROLLUPS"


@dataclass(frozen=True, slots=True)
class PageSettings:
    """Where the page reads.

    Attributes:
        exporter: address of the exporter, without a trailing slash.
        rollups: root of the rollup files; it need not exist yet.
    """

    exporter: str
    rollups: Path

    def to_environ(self) -> dict[str, str]:
        """The environment variables that carry them."""
        return {_EXPORTER: self.exporter, _ROLLUPS: str(self.rollups)}

    @classmethod
    def from_environ(cls, environ: Mapping[str, str] = os.environ) -> "PageSettings":
        """Read them back.

        Raises:
            ConfigError: the page was started by something else than its command.
        """
        try:
            return cls(environ[_EXPORTER], Path(environ[_ROLLUPS]))
        except KeyError as error:
            raise ConfigError(
                f"{error.args[0]} is not set; start the page with: ackscope dashboard --exporter URL --rollups DIR"
            ) from None
