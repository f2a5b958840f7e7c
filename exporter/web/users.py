"""Basic authentication against bcrypt hashes."""

import base64
import binascii
import hashlib
import hmac
import secrets
import threading
from collections.abc import Mapping

import bcrypt

_REMEMBERED = 100


class BasicAuthUsers:
    """Verifies basic auth. Thread-safe; hashes one password at a time, because each hash is expensive.

    Correct credentials are cached as a keyed digest in memory, so that a scrape does not cost 0.1 s each time. Wrong
    credentials are not cached, so a wrong password and an unknown user take equally long every time.

    Args:
        hashes: name -> bcrypt hash; empty admits everyone.
    """

    def __init__(self, hashes: Mapping[str, str]) -> None:
        self._hashes = {name.encode(): hashed.encode() for name, hashed in hashes.items()}
        # Unknown names are checked against the most expensive hash, so that they take as long as known ones.
        self._decoy = max(self._hashes.values(), key=_cost, default=b"")
        self._key = secrets.token_bytes(32)
        self._right: dict[bytes, None] = {}
        self._lock = threading.Lock()

    def admit(self, authorization: str) -> bool:
        """Whether an Authorization header has valid credentials."""
        if not self._hashes:
            return True
        given = _credentials(authorization)
        return given is not None and self._verify(*given)

    def must_hash(self, authorization: str) -> bool:
        """Whether `admit` has to hash a password for an Authorization header."""
        given = _credentials(authorization) if self._hashes else None
        return given is not None and self._digest(*given) not in self._right

    def remember(self, before: "BasicAuthUsers") -> None:
        """Take over the credentials that were right before, if no user has changed."""
        if before._hashes == self._hashes:  # noqa: SLF001  the same class
            self._key, self._right = before._key, before._right  # noqa: SLF001  as above

    def _digest(self, name: bytes, password: bytes) -> bytes:
        text = len(name).to_bytes(4, "big") + name + password
        return hmac.new(self._key, text, hashlib.sha256).digest()

    def _verify(self, name: bytes, password: bytes) -> bool:
        hashed = self._hashes.get(name)
        digest = self._digest(name, password)
        if digest in self._right:
            return True
        with self._lock:
            right = _matches(password, self._decoy if hashed is None else hashed) and hashed is not None
            if right:
                while len(self._right) >= _REMEMBERED:
                    del self._right[next(iter(self._right))]
                self._right[digest] = None
        return right


def _matches(password: bytes, hashed: bytes) -> bool:
    try:
        # bcrypt uses 72 bytes and its library rejects more. `htpasswd` also hashed only the first 72.
        return bcrypt.checkpw(password[:72], hashed)
    except ValueError:
        return False


def _credentials(header: str) -> tuple[bytes, bytes] | None:
    scheme, _, coded = header.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        name, colon, password = base64.b64decode(coded.strip(), validate=True).partition(b":")
    except (binascii.Error, ValueError):
        return None
    return (name, password) if colon else None


def _cost(hashed: bytes) -> int:
    return int(hashed.split(b"$")[2])
