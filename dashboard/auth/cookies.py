"""Cookies of the login: Streamlit's identity cookie, and the address to return to after signing in."""

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

RETURN_COOKIE = "ackscope_way"
"""Name of the cookie that stores the requested address while the person signs in at the provider."""

_RETURN_SECONDS = 900
_MAX_ADDRESS_LENGTH = 2000
_LOCAL_PATH = re.compile(r"/(?!/)[!-\[\]-~]*")
"""A path on this host: nothing that a browser reads as another host, no backslash, space or control character."""


class SignedInUser(NamedTuple):
    """A person who signed in.

    Attributes:
        claims: claims of the ID token.
        session_id: digest of the identity cookie; differs for every sign-in.
    """

    claims: Claims
    session_id: bytes


ANONYMOUS = SignedInUser({}, b"")


def signed_in_user(cookies: Mapping[str, str], key: str) -> SignedInUser:
    """The person in the identity cookie; `ANONYMOUS` if it is missing, was changed, or is signed with another key."""

    def decoded(name: str) -> bytes | None:
        text = cookies.get(name)
        # Header values are decoded as latin-1, but the cookie that Streamlit sets is ASCII.
        return None if text is None else decode_signed_value(key, name, text.encode("latin-1", "replace"))

    content = get_cookie_with_chunks(decoded, USER_COOKIE_NAME)
    try:
        claims = json.loads(content) if content else None
    except ValueError:
        return ANONYMOUS
    return SignedInUser(claims, hashlib.sha256(content or b"").digest()) if isinstance(claims, dict) else ANONYMOUS


def without_identity(headers: Headers) -> list[tuple[bytes, bytes]]:
    """Request headers without the identity cookie, as for somebody who has not signed in."""
    name = USER_COOKIE_NAME.encode()
    return [
        (key, b";".join(part for part in value.split(b";") if not part.strip().startswith(name)))
        if key == b"cookie"
        else (key, value)
        for key, value in headers
    ]


def sets_identity(headers: Headers) -> bool:
    """Whether a response sets the identity cookie."""
    cookie = re.compile(rb'%b="?[^";]' % USER_COOKIE_NAME.encode())
    return any(key == b"set-cookie" and cookie.match(value) is not None for key, value in headers)


def with_secure_cookies(headers: Headers) -> list[tuple[bytes, bytes]]:
    """Response headers in which Streamlit's own cookies are `Secure`: sent over https only."""
    return [
        (key, value + b"; Secure")
        if key == b"set-cookie" and value.startswith(b"_streamlit") and b"; secure" not in value.lower()
        else (key, value)
        for key, value in headers
    ]


def return_cookie(address: str, base: str, *, secure: bool) -> tuple[bytes, bytes]:
    """The header that stores the address to return to for 15 minutes; an empty address deletes the cookie."""
    age = _RETURN_SECONDS if address else 0
    tail = f"Max-Age={age}; Path={base or '/'}; HttpOnly; SameSite=Lax{'; Secure' if secure else ''}"
    return b"set-cookie", f"{RETURN_COOKIE}={quote(address, safe='/')}; {tail}".encode()


def return_address(cookies: Mapping[str, str], base: str) -> str | None:
    """The stored address, if it is one of this dashboard."""
    address = unquote(cookies.get(RETURN_COOKIE, ""))
    fits = (
        len(address) <= _MAX_ADDRESS_LENGTH
        and address.startswith(f"{base}/")
        and _LOCAL_PATH.fullmatch(address) is not None
    )
    return address if fits else None
