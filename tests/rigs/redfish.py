"""A BMC that speaks Redfish on loopback: pages given as JSON, sessions, TLS, and faults that a test switches on.

The pages that a test gives have the shape of DMTF's schemas; their values are its own.
"""

from __future__ import annotations

import base64
import json
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

Page = dict[str, Any]

SESSIONS = "/redfish/v1/SessionService/Sessions"


@dataclass(frozen=True)
class Fault:
    """An answer in place of a page. body: None for the page itself; drop: the connection ends without an answer."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    delay: float = 0.0
    drop: bool = False


class RedfishServer:
    """Serves `pages` by path. Everything may be changed while it runs.

    faults: path -> what goes wrong with it, `*` for all. user, password: None for a BMC that asks for none. sessions:
    whether it has a session service. seen: every request. at_once: the most requests that were under way together.
    """

    def __init__(
        self,
        pages: dict[str, Page],
        *,
        user: str | None = None,
        password: str = "",
        sessions: bool = True,
        certificate: tuple[Path, Path] | None = None,
    ) -> None:
        self.pages, self.user, self.password, self.sessions = pages, user, password, sessions
        self.faults: dict[str, Fault] = {}
        self.seen: list[tuple[str, str]] = []
        self.tokens: set[str] = set()
        self.at_once = 0
        self.port = 0
        self._certificate = certificate
        self._lock = threading.Lock()
        self._under_way = 0
        self._server: _Listener | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        return f"{'http' if self._certificate is None else 'https'}://127.0.0.1:{self.port}"

    def asked(self, method: str, path: str) -> int:
        """How often that was asked."""
        return self.seen.count((method, path))

    def start(self) -> None:
        """Starts, after a `kill` at the same port and without the sessions of before."""
        self.tokens.clear()
        self._server = _Listener(("127.0.0.1", self.port), self)
        if self._certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self._certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def kill(self) -> None:
        """Ends, with every connection."""
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server.drop_all()
            self._thread.join(5)
        self._server = self._thread = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    # --- answers ---

    def answer(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Fault:
        with self._lock:
            self.seen.append((method, path))
            self._under_way += 1
            self.at_once = max(self.at_once, self._under_way)
        try:
            fault = self.faults.get(path, self.faults.get("*"))
            if fault is not None and fault.delay:
                time.sleep(fault.delay)
            if fault is not None and (fault.status != 200 or fault.body is not None or fault.drop):
                return fault
            return self._answer(method, path, headers, body)
        finally:
            with self._lock:
                self._under_way -= 1

    def _answer(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Fault:
        if path == SESSIONS and self.sessions and method == "POST":
            said = json.loads(body)
            if (said["UserName"], said["Password"]) != (self.user, self.password):
                return Fault(401)
            token = f"token-{len(self.seen)}"
            self.tokens.add(token)
            return Fault(201, {"X-Auth-Token": token, "Location": f"{SESSIONS}/{token}"}, b"{}")
        if path == SESSIONS and not self.sessions:
            return Fault(404, {}, b'{"error": {}}')
        if self.user is not None and not self._knows(headers):
            return Fault(401)
        if method == "DELETE":
            self.tokens.discard(path.rpartition("/")[2])
            return Fault(204, {}, b"")
        page = self.pages.get(path) or self.pages.get(path.rstrip("/"))
        if page is None or method != "GET":
            return Fault(404, {}, b'{"error": {}}')
        return Fault(body=json.dumps({"@odata.id": path, **page}).encode())

    def _knows(self, headers: Mapping[str, str]) -> bool:
        plain = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
        return headers.get("X-Auth-Token") in self.tokens or headers.get("Authorization") == f"Basic {plain}"


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], bmc: RedfishServer) -> None:
        self._open: set[socket.socket] = set()
        super().__init__(address, _handler(bmc))

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""

    def drop_all(self) -> None:
        for request in list(self._open):
            self.shutdown_request(request)


def _handler(bmc: RedfishServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 10
        wbufsize = -1  # an answer is one packet

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            found = bmc.answer(self.command, self.path, self.headers, body)  # type: ignore[arg-type]
            if found.drop:
                self.close_connection = True
                return
            said = found.body or b""
            self.send_response(found.status)
            for name, value in {"Content-Length": str(len(said)), **found.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(said)

        do_GET = do_POST = do_DELETE = _serve

        def log_message(self, format: str, *args: Any) -> None:
            """Says nothing."""

    return Handler


def self_signed(directory: Path, name: str = "bmc.example") -> tuple[Path, Path]:
    """A certificate of its own for `name` and 127.0.0.1, and its key."""
    cert, key = directory / "bmc.pem", directory / "bmc.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-days", "2", "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name},IP:127.0.0.1",
         "-keyout", key, "-out", cert],
        check=True, capture_output=True, timeout=30,
    )  # fmt: skip
    return cert, key
