"""Who may see the page, told from what the provider says of a person. Pure: no clock, no Streamlit."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

Claims = Mapping[str, Any]
"""What an ID token says, and `is_logged_in`, which Streamlit adds; OpenID Connect Core 1.0, sections 2 and 5.1."""

FAILED = ("signin", "failed")
"""Word and value in the address of the door, after the provider, or the check of its answer, said no."""


class AccessDecision(Enum):
    """What becomes of somebody who opens the page."""

    ADMITTED = "sees the page"
    UNKNOWN = "has not signed in"
    OVER = "signed in too long ago"
    REFUSED = "signed in, and is not on the list"


@dataclass(frozen=True, slots=True)
class AccessRules:
    """Who comes in, and for how long. Nothing here is secret; one thing that fits is enough.

    Attributes:
        emails: addresses in lower case.
        domains: what stands behind the @, in lower case; one below it does not count.
        claims: name of a claim -> values, of which the claim must be or hold one.
        session: seconds from signing in until it has to be done again.
    """

    emails: tuple[str, ...]
    domains: tuple[str, ...]
    claims: Mapping[str, tuple[str, ...]]
    session: float

    def judge(self, claims: Claims, now: float) -> AccessDecision:
        """Tell what becomes of a person.

        Args:
            claims: empty for somebody who has not signed in.
            now: seconds since 1970.
        """
        ends = self.ends(claims)
        if claims.get("is_logged_in") is not True or ends is None:
            return AccessDecision.UNKNOWN
        if now >= ends:
            return AccessDecision.OVER
        return AccessDecision.ADMITTED if self._lists(claims) else AccessDecision.REFUSED

    def ends(self, claims: Claims) -> float | None:
        """When the session is over, in seconds since 1970; None where nobody says when it began."""
        began = claims.get("iat")
        return began + self.session if isinstance(began, int | float) and not isinstance(began, bool) else None

    def _lists(self, claims: Claims) -> bool:
        address = verified_email(claims)
        if address is not None and (address in self.emails or address.rpartition("@")[2] in self.domains):
            return True
        return any(value in wanted for name, wanted in self.claims.items() for value in _values(claims, name))

    def to_json(self) -> str:
        """As text, for the environment of the page."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "AccessRules":
        """Read it back.

        Raises:
            ValueError: it is something else.
        """
        told = json.loads(text)
        claims = {name: tuple(values) for name, values in told["claims"].items()}
        return cls(tuple(told["emails"]), tuple(told["domains"]), claims, float(told["session"]))


def verified_email(claims: Claims) -> str | None:
    """The address in lower case; None where the provider does not say that it is the person's own.

    Anybody may write any address into an account where nobody verifies it.
    """
    address = claims.get("email")
    # Some providers send the word instead of the value.
    if not isinstance(address, str) or claims.get("email_verified") not in (True, "true"):
        return None
    return address.lower()


def called(claims: Claims) -> str:
    """How to call a person on the page and in the log."""
    names = (claims.get(name) for name in ("email", "preferred_username", "name", "sub"))
    return next((name for name in names if isinstance(name, str) and name), "somebody")


def _values(claims: Claims, name: str) -> Iterator[str]:
    """The texts of a claim, which is one or a list; `a.b` is the claim of that name, else `b` inside `a`."""
    value: Any = claims.get(name)
    if value is None:
        value = claims
        for word in name.split("."):
            value = value.get(word) if isinstance(value, Mapping) else None
    yield from (item for item in (value if isinstance(value, list) else [value]) if isinstance(item, str))
