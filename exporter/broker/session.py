"""HTTP sessions that use only the configured TLS settings and ignore the environment."""

import ssl
from pathlib import Path

import requests
import urllib3

from ackscope.errors import ConfigError
from exporter.broker.settings import AccessSettings
from exporter.broker.transport import DeadlineAdapter

CONNECT_SECONDS = 3.0
"""A host that takes longer to accept a connection counts as unreachable."""


def connection_pool(size: int) -> DeadlineAdapter:
    """Create a connection pool for several sessions. The connection that was returned last is used next.

    4.3 closes a connection after 5 s idle. With a pool per session, every round would need one new connection and TLS
    handshake per session.

    Args:
        size: number of connections that stay open. More may be open at a time, because no request waits for another.
    """
    return DeadlineAdapter(pool_maxsize=size, max_retries=0)


def open_session(settings: AccessSettings, what: str, connections: DeadlineAdapter | None = None) -> requests.Session:
    """Open a session whose timeout bounds the whole answer.

    Args:
        settings: TLS settings.
        what: name of the settings in error messages, such as `clusters.shop.management`.
        connections: pool shared with other sessions of the same settings; by default its own.

    Raises:
        ConfigError: a certificate or key file cannot be used.
    """
    session = requests.Session()
    # No proxies, netrc or certificates from the environment, only what is configured.
    session.trust_env = False
    session.verify = settings.verify
    if settings.verify and settings.ca_file is not None:
        session.verify = _checked_ca_file(settings.ca_file, f"{what}.ca_file")
    if not settings.verify:
        # The operator chose this deliberately, so a warning with every request would be noise.
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    if settings.cert_file is not None:
        _check_client_certificate(settings.cert_file, settings.key_file, what)
        key = settings.key_file
        session.cert = str(settings.cert_file) if key is None else (str(settings.cert_file), str(key))
    adapter = connection_pool(1) if connections is None else connections
    for scheme in ("http://", "https://"):
        session.mount(scheme, adapter)
    return session


def request_timeout(seconds: float) -> urllib3.Timeout:
    """Return the timeout of one request, for `timeout=` of the methods of a session."""
    return urllib3.Timeout(total=seconds, connect=min(CONNECT_SECONDS, seconds), read=seconds)


def _checked_ca_file(ca_file: Path, what: str) -> str:
    """Load the file and return its path. Without the check the first request would fail without naming the setting."""
    try:
        ssl.create_default_context(cafile=str(ca_file))
    except OSError:
        raise ConfigError(
            f"{what}: cannot read PEM certificates from {ca_file}; "
            "use the certificate of the authority that signed the broker's"
        ) from None
    return str(ca_file)


def _check_client_certificate(cert_file: Path, key_file: Path | None, what: str) -> None:
    """Load the client certificate and its key. Without it the first request would fail without naming the setting."""
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
        # With an empty passphrase OpenSSL does not prompt on the terminal for an encrypted key.
        context.load_cert_chain(cert_file, key_file, password="")
    except OSError as error:
        reason = getattr(error, "reason", None)
        if reason == "KEY_VALUES_MISMATCH":
            raise ConfigError(f"{what}.key_file: {key_file or cert_file} is not the key of {cert_file}") from None
        where = f"{cert_file} and {key_file}" if key_file is not None else f"{cert_file}"
        raise ConfigError(
            f"{what}.cert_file: no PEM certificate with its key in {where}; "
            "provide both, the key without a passphrase (its file as key_file)"
        ) from None
