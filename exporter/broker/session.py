"""HTTP sessions that ask only what is configured: TLS as the settings say, and nothing from the environment."""

import ssl
from pathlib import Path

import requests
import urllib3

from ackscope.errors import ConfigError
from exporter.broker.settings import AccessSettings
from exporter.broker.transport import DeadlineAdapter

CONNECT_SECONDS = 3.0
"""A host that takes longer to accept a connection is away."""


def open_connections(most: int) -> DeadlineAdapter:
    """Connections that several sessions share: the one that was given back last is used next.

    4.3 closes one on which nothing was asked for 5 s: where each session had its own, every round took as many new
    ones, and as many TLS handshakes.

    Args:
        most: so many are kept; there may be more at a time, as none waits for another.
    """
    return DeadlineAdapter(pool_maxsize=most, max_retries=0)


def open_session(settings: AccessSettings, what: str, connections: DeadlineAdapter | None = None) -> requests.Session:
    """A session whose timeout bounds a whole answer.

    Args:
        settings: TLS is read of them.
        what: how to call them in a message, such as `clusters.shop.management`.
        connections: that it shares with other sessions of the same settings; one of its own without.

    Raises:
        ConfigError: a file of certificates or keys cannot be used.
    """
    session = requests.Session()
    # No proxies, netrc or certificates from the environment: what is asked is what is configured.
    session.trust_env = False
    session.verify = settings.verify
    if settings.verify and settings.ca_file is not None:
        session.verify = _authorities(settings.ca_file, f"{what}.ca_file")
    if not settings.verify:
        # The operator has chosen it; a warning with every request helps nobody.
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    if settings.cert_file is not None:
        _check_own(settings.cert_file, settings.key_file, what)
        key = settings.key_file
        session.cert = str(settings.cert_file) if key is None else (str(settings.cert_file), str(key))
    adapter = open_connections(1) if connections is None else connections
    for scheme in ("http://", "https://"):
        session.mount(scheme, adapter)
    return session


def limit(seconds: float) -> urllib3.Timeout:
    """The time limit of one request, for `timeout=` of a session's methods."""
    return urllib3.Timeout(total=seconds, connect=min(CONNECT_SECONDS, seconds), read=seconds)


def _authorities(ca_file: Path, what: str) -> str:
    """The path of a file of certificates that can be loaded: else the first request would fail without a name."""
    try:
        ssl.create_default_context(cafile=str(ca_file))
    except OSError:
        raise ConfigError(
            f"{what}: {ca_file} is no readable file of PEM certificates; "
            "give that of the authority that signed the broker's"
        ) from None
    return str(ca_file)


def _check_own(cert_file: Path, key_file: Path | None, what: str) -> None:
    """See that our certificate and its key can be used: else the first request would fail without a name."""
    for file, key in ((cert_file, "cert_file"), (key_file, "key_file")):
        try:
            if file is not None:
                file.read_bytes()
        except OSError as error:
            raise ConfigError(
                f"{what}.{key}: {file} cannot be read ({error.strerror}); check its path and owner"
            ) from None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        # An empty passphrase: without one, OpenSSL would ask the terminal for that of an encrypted key.
        context.load_cert_chain(cert_file, key_file, password="")
    except OSError as error:
        reason = getattr(error, "reason", None)
        if reason == "KEY_VALUES_MISMATCH":
            raise ConfigError(f"{what}.key_file: {key_file or cert_file} is not the key of {cert_file}") from None
        where = f"{cert_file} and {key_file}" if key_file is not None else f"{cert_file}"
        raise ConfigError(
            f"{what}.cert_file: {where} hold no PEM certificate with its key; "
            "give both, the key without a passphrase (its file as key_file)"
        ) from None
