"""A real mosquitto on loopback with its own directory, port and certificates, gone at the end."""

from __future__ import annotations

import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
READY_S = 10.0
DAYS = "2"


class RigError(RuntimeError):
    """The broker did not come up."""


class Mosquitto:
    """`with Mosquitto() as broker:` a broker at 127.0.0.1:`broker.port`, which `kill` and `start` work on as well.

    users: name to password; without them everybody may come in. certificates: of `make_certificates`, for TLS;
    mutual: clients need one too.
    """

    def __init__(
        self, *, users: dict[str, str] | None = None, certificates: Path | None = None, mutual: bool = False
    ) -> None:
        self.port = free_port()
        self._users, self._certificates, self._mutual = users or {}, certificates, mutual
        self._directory = tempfile.TemporaryDirectory(prefix="mosquitto-")
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._write()
        try:
            self.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        self._directory.cleanup()

    def start(self) -> None:
        """Starts it, on the same port as before, and waits until it listens. It ends with its parent."""
        place = Path(self._directory.name)
        with (place / "log").open("ab") as log:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "mosquitto", "-c", str(place / "conf")],
                env={"PATH": PATH}, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        until = time.monotonic() + READY_S
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            if self._process.poll() is not None or time.monotonic() > until:
                raise RigError(f"mosquitto did not come up: {(place / 'log').read_text()}")
            time.sleep(0.01)

    def kill(self) -> None:
        """Ends it without a goodbye, as a crash does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _write(self) -> None:
        place = Path(self._directory.name)
        lines = [f"listener {self.port} 127.0.0.1", "persistence false", "user root", "max_queued_messages 10000"]
        lines.append(f"allow_anonymous {'false' if self._users else 'true'}")
        if self._users:
            passwords = place / "passwords"
            passwords.write_text("".join(f"{name}:{word}\n" for name, word in self._users.items()))
            subprocess.run(["mosquitto_passwd", "-U", str(passwords)], check=True, env={"PATH": PATH})
            lines.append(f"password_file {passwords}")
        if (made := self._certificates) is not None:
            lines += [f"cafile {made}/ca.pem", f"certfile {made}/server.pem", f"keyfile {made}/server.key"]
            lines.append(f"require_certificate {'true' if self._mutual else 'false'}")
        (place / "conf").write_text("\n".join(lines) + "\n")


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def make_certificates(place: Path) -> Path:
    """An authority `ca`, a `server` (127.0.0.1, broker.test) and a `client` of it, and an authority `other`."""
    place.mkdir(parents=True, exist_ok=True)
    for name in ("ca", "other"):
        _openssl(
            place, "req", "-x509", "-new", "-subj", f"/CN={name}", "-days", DAYS, *_key(name), "-out", f"{name}.pem"
        )
    for name, names in (("server", "IP:127.0.0.1,DNS:broker.test"), ("client", "DNS:client.test")):
        _openssl(place, "req", "-new", "-subj", f"/CN={name}", *_key(name), "-out", f"{name}.csr")
        (place / f"{name}.ext").write_text(f"subjectAltName={names}\n")
        _openssl(
            place, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
            "-days", DAYS, "-extfile", f"{name}.ext", "-out", f"{name}.pem",
        )  # fmt: skip
    return place


def _key(name: str) -> tuple[str, ...]:
    return "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", f"{name}.key"


def _openssl(place: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=place, check=True, capture_output=True)
