"""tls-certificate-expiry: a TLS listener has a certificate that expires in ten days."""

import subprocess

from ackscope.errors import MissingPart
from lab.faults.fault import Fault, FaultSpec
from lab.faults.nodes.inside import NODE, fails, until
from lab.ports import free_ports

_DAYS = 10


def inject(fault: Fault) -> None:
    """Create the certificate and open the listener; close it at the end."""
    folder, port = fault.lab.folder, free_ports(1)[0]
    names = {"certfile": "fault-certificate.pem", "keyfile": "fault-key.pem"}
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    made = ["-out", str(folder / names["certfile"]), "-keyout", str(folder / names["keyfile"])]
    command = ["openssl", "req", "-x509", *kind, "-subj", "/CN=localhost", "-days", str(_DAYS), *made]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except FileNotFoundError:
        raise MissingPart("openssl is missing: apt-get install openssl") from None
    (folder / names["keyfile"]).chmod(0o644)
    inside = fault.lab.broker.inside(folder)
    # The check of 4.0 returns 500 for a listener without an authority, so the certificate is its own.
    given = {"cacertfile": names["certfile"], **names}
    options = ", ".join(f'{{{option}, "{inside / name}"}}' for option, name in given.items())
    place = f'{{"127.0.0.1", {port}}}'
    fault.later(lambda: fault.lab.ctl(0, "eval", f"rabbit_networking:stop_tcp_listener({{{{127,0,0,1}}, {port}}})."))
    fault.lab.ctl(0, "eval", f"rabbit_networking:start_ssl_listener({place}, [{options}], 1).")
    until(fault, lambda: fails(fault, "certificate-expiration/1/months"), "the end date of the certificate")
    fault.announce()
    fault.hold()


SPEC = FaultSpec(
    name="tls-certificate-expiry",
    rule="tls-certificate-expiry",
    summary="the certificate of a TLS listener expires in ten days",
    subject=NODE,
    inject=inject,
)
