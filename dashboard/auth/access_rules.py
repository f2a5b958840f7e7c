"""The access rules, which are checked against the claims of an ID token. Pure: no clock, no Streamlit."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

Claims = Mapping[str, Any]
"""The claims of an ID token, and `is_logged_in`, which Streamlit adds; OpenID Connect Core 1.0, sections 2 and 5.1."""


class AccessDecision(Enum):
    """Result of checking a person against the access rules."""

    ADMITTED = "sees the dashboard"
    UNKNOWN = "has not signed in"
    EXPIRED = "signed in too long ago"
    REFUSED = "signed in, but is not on the list"


@dataclass(frozen=True, slots=True)
class AccessRules:
    """Who gets access, and for how long. Holds no secret; one match is enough.

    Attributes:
        emails: addresses in lower case.
        domains: domains after the @, in lower case; subdomains do not match.
        claims: name of a claim -> accepted values; the claim must be or contain one of them.
        session: seconds from signing in until the person has to sign in again.
    """

    emails: tuple[str, ...]
    domains: tuple[str, ...]
    claims: Mapping[str, tuple[str, ...]]
    session: float

    def check(self, claims: Claims, now: float) -> AccessDecision:
        """Decide whether a person gets access.

        Args:
            claims: empty for somebody who has not signed in.
            now: seconds since 1970.
        """
        expires = self.expires(claims)
        if claims.get("is_logged_in") is not True or expires is None:
            return AccessDecision.UNKNOWN
        if now >= expires:
            return AccessDecision.EXPIRED
        return AccessDecision.ADMITTED if self._matches(claims) else AccessDecision.REFUSED

    def expires(self, claims: Claims) -> float | None:
        """When the session ends, in seconds since 1970; None if the claims do not say when it began (`iat`)."""
        issued = claims.get("iat")
        return issued + self.session if isinstance(issued, int | float) and not isinstance(issued, bool) else None

    def _matches(self, claims: Claims) -> bool:
        address = verified_email(claims)
        if address is not None and (address in self.emails or address.rpartition("@")[2] in self.domains):
            return True
        return any(value in accepted for name, accepted in self.claims.items() for value in _values(claims, name))

    def to_json(self) -> str:
        """The rules as text, for the environment of the page."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "AccessRules":
        """The rules from `to_json`.

        Raises:
            ValueError: the text is something else.
        """
        document = json.loads(text)
        claims = {name: tuple(values) for name, values in document["claims"].items()}
        return cls(tuple(document["emails"]), tuple(document["domains"]), claims, float(document["session"]))


def verified_email(claims: Claims) -> str | None:
    """The e-mail address in lower case; None unless the provider says that it is verified.

    Without verification anybody can put any address into an account.
    """
    address = claims.get("email")
    # Some providers send the text "true" instead of the boolean.
    if not isinstance(address, str) or claims.get("email_verified") not in (True, "true"):
        return None
    return address.lower()


def display_name(claims: Claims) -> str:
    """The name of a person on the page and in the log."""
    names = (claims.get(name) for name in ("email", "preferred_username", "name", "sub"))
    return next((name for name in names if isinstance(name, str) and name), "somebody")


def _values(claims: Claims, name: str) -> Iterator[str]:
    """The values of a claim, which is one text or a list of texts.

    The name `a.b` means the claim `a.b` if there is one, else the entry `b` of the claim `a`.
    """
    value: Any = claims.get(name)
    if value is None:
        value = claims
        for word in name.split("."):
            value = value.get(word) if isinstance(value, Mapping) else None
    yield from (item for item in (value if isinstance(value, list) else [value]) if isinstance(item, str))
