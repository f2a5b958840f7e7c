"""Phrases in the reasons of failed requests and probes: readers and probes write them, rules search for them.

A reason is a text for people, and bundles of older versions contain only this text. So the phrases never change.
"""

from enum import StrEnum


class FailurePhrase(StrEnum):
    """What happened, as part of a reason."""

    NO_ANSWER = "no answer within"
    NO_FULL_ANSWER = "no full answer within"
    NO_ANSWER_IN_TIME = "no answer in time"
    NO_HEARTBEAT = "no heartbeat"
    SILENT_AFTER_CONNECT = "says nothing"
    REFUSED = "connection refused"


def contains(reason: str | None, *phrases: FailurePhrase) -> bool:
    """Whether a reason contains one of these phrases; a missing reason contains none."""
    return any(phrase in (reason or "") for phrase in phrases)
