"""An OpenID Connect provider on loopback, as a process: `python -m tests.dashboard.login_provider PORT`.

It is oidc-provider-mock with two forged tokens: that of `mallory` claims to be ann and was changed after signing; that
of `trudy` is signed with another key.
"""

import base64
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import requests

from tests.dashboard.command import START_SECONDS, free_port

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class Provider(NamedTuple):
    """A running provider."""

    url: str

    @property
    def metadata(self) -> str:
        """URL of the discovery document."""
        return f"{self.url}/.well-known/openid-configuration"

    def register(self, redirect: str) -> tuple[str, str]:
        """Register a client; returns its ID and secret."""
        answer = requests.post(f"{self.url}/oauth2/clients", json={"redirect_uris": [redirect]}, timeout=10)
        answer.raise_for_status()
        reported = answer.json()
        return reported["client_id"], reported["client_secret"]

    def say(self, sub: str, **claims: object) -> None:
        """Set the claims of a person; they may also replace standard claims such as `exp`."""
        requests.put(f"{self.url}/users/{sub}", json=claims, timeout=10).raise_for_status()


@contextmanager
def providing(folder: Path) -> Iterator[Provider]:
    """Run the provider until the block ends."""
    port = free_port()
    log = folder / "provider.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.dashboard.login_provider", str(port)],
            stdout=output,
            stderr=output,
        )
    provider = Provider(f"http://localhost:{port}")
    try:
        deadline = time.monotonic() + START_SECONDS
        while True:
            assert process.poll() is None, f"ended with {process.returncode}: {log.read_text()}"
            assert time.monotonic() < deadline, f"did not answer: {log.read_text()}"
            try:
                requests.get(provider.metadata, timeout=2).raise_for_status()
                break
            except requests.RequestException:
                time.sleep(0.1)
        yield provider
    finally:
        process.terminate()
        process.wait(timeout=20)


def _lying(honest: Application) -> Application:
    """The provider, with the forged tokens."""

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"] != "/oauth2/token":
            return honest(environ, start)
        kept: list[Any] = []
        body = b"".join(honest(environ, lambda *reported: kept.append(reported)))
        status, headers, *_ = kept[0]
        if status.startswith("200"):
            document = json.loads(body)
            document["id_token"] = _exchanged(document["id_token"])
            body = json.dumps(document).encode()
        start(status, [item for item in headers if item[0].lower() != "content-length"])
        return [body]

    return answer


def _exchanged(token: str) -> str:
    from joserfc import jwt
    from joserfc.jwk import RSAKey

    head, reported, signature = token.split(".")
    claims: Mapping[str, Any] = json.loads(base64.urlsafe_b64decode(reported + "=="))
    as_ann = {**claims, "sub": "ann", "email": "ann@example.org"}
    if claims["sub"] == "mallory":
        forged = base64.urlsafe_b64encode(json.dumps(as_ann).encode()).decode().rstrip("=")
        return f"{head}.{forged}.{signature}"
    if claims["sub"] == "trudy":
        return jwt.encode({"alg": "RS256"}, as_ann, RSAKey.generate_key(2048))
    return token


def main(port: int) -> None:
    """Serve until the process is stopped."""
    import oidc_provider_mock
    from werkzeug.serving import make_server

    application = oidc_provider_mock.app(require_client_registration=True, require_nonce=True)
    make_server("localhost", port, _lying(application), threaded=True).serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]))
