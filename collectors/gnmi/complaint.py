"""Why a call to a switch failed, in words for its operator."""

from __future__ import annotations

import re
from typing import Any

import grpc  # type: ignore[import-untyped]

_CODE = grpc.StatusCode
# a switch that has no such path, cannot tell of its changes or has not the encoding answers with one of these
REFUSALS = frozenset(
    (_CODE.INVALID_ARGUMENT, _CODE.NOT_FOUND, _CODE.UNIMPLEMENTED, _CODE.UNKNOWN, _CODE.FAILED_PRECONDITION)
)
_MEANING = {
    _CODE.UNAUTHENTICATED: "it refuses username or password",
    _CODE.PERMISSION_DENIED: "the user may not read telemetry",
    _CODE.UNIMPLEMENTED: "it is no gNMI server, or one without Subscribe",
    _CODE.RESOURCE_EXHAUSTED: "it has no room for another subscription, or sends messages that are too large",
    _CODE.DEADLINE_EXCEEDED: "it does not answer in time",
}
# what gRPC says of a connection that could not be made -> what that means; {0} is the part in brackets
_NO_CONNECTION = (
    (r"CERTIFICATE_VERIFY_FAILED: ?([^:]*)", "its certificate is not accepted ({0}); see tls.ca"),
    (r"(certificate signature failure)", "its certificate is not accepted ({0}); see tls.ca"),
    (r"Hostname Verification Check failed", "its certificate is for another name; set tls.server_name"),
    (r"WRONG_VERSION_NUMBER", "it speaks no TLS on this port; leave out tls, or give its TLS port"),
    (r"create security handshaker", "the certificates or keys that tls names cannot be used; expected PEM files"),
    (r"Failed parsing HTTP/2", "what answers there is no gRPC server"),
    (r"Socket closed", "it closed the connection; does it want TLS, or a certificate of ours?"),
    (r"lookup failed for .*: ([^]]*)", "nobody knows that name ({0})"),
    (r"Failed to connect to remote host: (.*)", "no connection ({0})"),
)


def why(problem: Any) -> str:
    """The reason of an AioRpcError."""
    code, details = problem.code(), " ".join(str(problem.details() or "").split())
    if code is _CODE.UNAVAILABLE:
        found = ((re.search(pattern, details), text) for pattern, text in _NO_CONNECTION)
        return next((text.format(*m.groups()) for m, text in found if m is not None), f"no connection ({details})")
    if code in _MEANING:
        return f"{_MEANING[code]} ({details})" if details else _MEANING[code]
    return f"{code.name}: {details}"
