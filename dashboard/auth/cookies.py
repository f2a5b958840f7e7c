"""The cookies of Streamlit's login: who a browser says it is, and the address that it first asked for."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote, unquote

from streamlit.auth_util import get_cookie_with_chunks
from streamlit.web.server.starlette.starlette_app_utils import decode_signed_value
from streamlit.web.server.starlette.starlette_server_config import USER_COOKIE_NAME

from dashboard.auth.access_rules import Claims

Headers = Sequence[tuple[bytes, bytes]]

WAY = "ackscope_way"
"""Name of the cookie that keeps the address somebody wanted while the provider asks who they are."""

_WAY_SECONDS = 900
_LONGEST_WAY = 2000
_LOCAL = re.compile(r"/(?!/)[!-\[\]-~]*")
"""A path of this host: nothing that a browser reads as another one, no backslash, no space, no control character."""


class SignedInUser(NamedTuple):
    """Somebody who signed in.

    Attributes:
        claims: what the provider said of them.
        mark: tells one signing in from every other.
    """

    claims: Claims
    mark: bytes


NOBODY = SignedInUser({}, b"")


def person(cookies: Mapping[str, str], key: str) -> SignedInUser:
    """Whose cookie it is; nobody's where it is not there, was changed, or is signed with another key."""

    def one(name: str) -> bytes | None:
        text = cookies.get(name)
        # Headers are latin-1; what a browser was given is ASCII.
        return None if text is None else decode_signed_value(key, name, text.encode("latin-1", "replace"))

    told = get_cookie_with_chunks(one, USER_COOKIE_NAME)
    try:
        claims = json.loads(told) if told else None
    except ValueError:
        return NOBODY
    return SignedInUser(claims, hashlib.sha256(told or b"").digest()) if isinstance(claims, dict) else NOBODY


def without_person(headers: Headers) -> list[tuple[bytes, bytes]]:
    """The headers of a request, as of somebody who has not signed in."""
    name = USER_COOKIE_NAME.encode()
    return [
        (key, b";".join(part for part in value.split(b";") if not part.strip().startswith(name)))
        if key == b"cookie"
        else (key, value)
        for key, value in headers
    ]


def signs_in(headers: Headers) -> bool:
    """Whether an answer hands out the cookie of a person."""
    given = re.compile(rb'%b="?[^";]' % USER_COOKIE_NAME.encode())
    return any(key == b"set-cookie" and given.match(value) is not None for key, value in headers)


def encrypted(headers: Headers) -> list[tuple[bytes, bytes]]:
    """The headers of an answer; Streamlit's own cookies travel by https only."""
    return [
        (key, value + b"; Secure")
        if key == b"set-cookie" and value.startswith(b"_streamlit") and b"; secure" not in value.lower()
        else (key, value)
        for key, value in headers
    ]


def keep_way(address: str, base: str, *, secure: bool) -> tuple[bytes, bytes]:
    """The header that keeps an address for a quarter of an hour; an empty one forgets it."""
    age = _WAY_SECONDS if address else 0
    tail = f"Max-Age={age}; Path={base or '/'}; HttpOnly; SameSite=Lax{'; Secure' if secure else ''}"
    return b"set-cookie", f"{WAY}={quote(address, safe='/')}; {tail}".encode()


def way(cookies: Mapping[str, str], base: str) -> str | None:
    """The address that was kept, if it is one of this page."""
    address = unquote(cookies.get(WAY, ""))
    fits = len(address) <= _LONGEST_WAY and address.startswith(f"{base}/") and _LOCAL.fullmatch(address) is not None
    return address if fits else None
