"""Certificates for tests, made by openssl: authorities, servers, clients."""

import subprocess
from pathlib import Path


def _openssl(*words):
    done = subprocess.run(["openssl", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def make(folder: Path, name: str, sans: str = "IP:127.0.0.1", issuer: str = "", key: str = "") -> tuple[Path, Path]:
    """A certificate and its key, `name.pem` and `name.key`; without an issuer it is an authority of its own."""
    certificate, own = folder / f"{name}.pem", folder / f"{name}.key"
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    by = ["-CA", str(folder / f"{issuer}.pem"), "-CAkey", str(folder / f"{issuer}.key")] if issuer else []
    secret = ["-passout", f"pass:{key}"] if key else ["-nodes"]
    extension = ["-addext", f"subjectAltName={sans}"]
    where = ["-out", str(certificate), "-keyout", str(own)]
    _openssl("req", "-x509", *kind, *secret, *by, *extension, "-subj", f"/CN={name}", "-days", "2", *where)
    return certificate, own
