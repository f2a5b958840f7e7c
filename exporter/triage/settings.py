"""Settings of triage."""

from pathlib import Path

from ackscope.settings import Settings


class TriageSettings(Settings):
    """What people say about findings: who acknowledged them, who works on them, until when they are muted.

    Attributes:
        file: where it is stored. If unset, nothing can be acknowledged or muted. Everybody who can reach the exporter
            or its dashboard can change it.
    """

    file: Path | None = None
