"""The certificate that a server shows, for `insecure`: gRPC cannot leave the check out, so it is given that one.

Nothing is proved by this; it is for switches that make their own certificates, in a network that is trusted.
"""

from __future__ import annotations

import socket
import ssl
from typing import Any

from collectors.base import CollectorError


def shown(address: str, seconds: float) -> tuple[bytes, str]:
    """The certificate (PEM) of `host:port` and a name that it is for. Blocks; raises CollectorError."""
    host, _, port = address.rpartition(":")
    where = (host.strip("[]"), int(port))
    try:
        unchecked = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
        with _connected(unchecked, where, seconds) as stream:
            pem = ssl.DER_cert_to_PEM_cert(stream.getpeercert(binary_form=True) or b"")
        # only a certificate that has been checked is given in parts: it is checked against itself
        checked = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        checked.check_hostname = False
        checked.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
        checked.load_verify_locations(cadata=pem)
        with _connected(checked, where, seconds) as stream:
            name = _name(stream.getpeercert())
    except ssl.SSLError as problem:
        raise CollectorError(
            f"no certificate can be had from it ({problem.reason}); does it speak TLS there?"
        ) from None
    except (OSError, ValueError) as problem:
        raise CollectorError(f"no connection ({problem})") from problem
    return pem.encode(), name


def _connected(context: ssl.SSLContext, where: tuple[str, int], seconds: float) -> ssl.SSLSocket:
    context.set_alpn_protocols(["h2"])
    return context.wrap_socket(socket.create_connection(where, timeout=seconds), server_hostname=where[0])


def _name(certificate: Any) -> str:
    """The first name of a certificate, in the form that `getpeercert` gives; "" where it has none."""
    names = [value for kind, value in certificate.get("subjectAltName", ()) if kind in ("DNS", "IP Address")]
    subject = [pair for part in certificate.get("subject", ()) for pair in part]
    names += [value for kind, value in subject if kind == "commonName"]
    return str(names[0]).replace("*", "any") if names else ""
