"""Texts with which the broker refuses what a client asks of a queue or an exchange."""

from diagnosis.contract import View


def access_words(view: View, access: str) -> tuple[str, ...]:
    """Return the words for an access ("read" or "write") that the text may have: from 4.0 on (seen: not on 3.10.8)."""
    if view.version is None or (3, 10) < view.version < (4, 0):
        return ("", f"{access} ")
    return (f"{access} ",) if view.version >= (4, 0) else ("",)


def refusal(word: str, kind: str, name: str, vhost: str, user: str) -> str:
    """Return the text for a word of `access_words`, of an object whose kind is "queue" or "exchange"."""
    return f"ACCESS_REFUSED - {word}access to {kind} '{name}' in vhost '{vhost}' refused for user '{user}'"


def no_prefetch(view: View, name: str, vhost: str) -> str:
    """Return the text for a consumer of a stream that has not set a prefetch (406); seen on 4.3.6, else from source."""
    which = f"stream queue '{name}' in vhost '{vhost}'"
    if view.version is not None and view.version < (4, 0):
        which = f"'queue '{name}' in vhost '{vhost}''"
    return f"PRECONDITION_FAILED - consumer prefetch count is not set for {which}"
