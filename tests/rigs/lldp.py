"""Real lldpd in every namespace of the two-plane fabric: each device announces itself and hears its neighbours."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, Self

from .netns import RigError, TwoPlanes


class Neighbours:
    """An lldpd per host and switch, started on enter and ended on exit, or in any case after `seconds`."""

    def __init__(self, rig: TwoPlanes, seconds: float = 60) -> None:
        self.rig, self.seconds = rig, seconds
        self._sockets: tempfile.TemporaryDirectory[str] | None = None
        self._daemons: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        self._sockets = tempfile.TemporaryDirectory(prefix=f"{self.rig.prefix}lldp-")
        Path(self._sockets.name).chmod(0o711)  # lldpcli talks as the daemon's own user
        try:
            for node in self.rig.nodes:
                command = ("lldpd", "-d", "-u", str(self._socket(node)), "-I", "*,!br0,!lo")
                self._daemons.append(self.rig.spawn(node, *command, seconds=self.seconds))
            for node in self.rig.nodes:
                self._wait(node)
                for setting in (f"system hostname {node}", "lldp portidsubtype ifname", "lldp tx-interval 1"):
                    self._ask(node, "configure", *setting.split())
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for daemon in self._daemons:
            daemon.terminate()
        for daemon in self._daemons:
            daemon.wait(timeout=5)
        if self._sockets is not None:
            self._sockets.cleanup()

    def of(self, node: str, form: str = "json0", what: str = "neighbors") -> str:
        """What `lldpcli show` prints on one node."""
        return self._ask(node, "-f", form, "show", what)

    def wait_for_all(self, seconds: float = 15) -> None:
        """Wait until every device hears all its neighbours under their own names."""
        ends = Counter(end.split("/")[0] for cable in self.rig.cables for end in (cable.a, cable.b))
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if all(self._heard(node) == ends[node] for node in self.rig.nodes):
                return
            time.sleep(0.3)
        heard = ", ".join(f"{node} {self._heard(node)} of {ends[node]}" for node in self.rig.nodes)
        raise RigError(f"not all neighbours heard in {seconds:g} s: {heard}")

    def _heard(self, node: str) -> int:
        found: Any = json.loads(self.of(node))
        entries = [e for block in found["lldp"] for e in block.get("interface", [])]
        return sum(e["chassis"][0].get("name", [{}])[0].get("value") in self.rig.nodes for e in entries)

    def _socket(self, node: str) -> Path:
        if self._sockets is None:
            raise RigError("the rig is not started; use it in a with statement")
        return Path(self._sockets.name) / node

    def _wait(self, node: str) -> None:
        """Wait until the daemon answers: its socket is there a moment before anyone may use it."""
        deadline = time.monotonic() + 10
        while True:
            try:
                self._ask(node, "show", "chassis")
                return
            except RigError:
                if time.monotonic() > deadline:
                    raise
            time.sleep(0.1)

    def _ask(self, node: str, *words: str) -> str:
        command = ("lldpcli", "-u", str(self._socket(node)), *words)
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)
        if done.returncode:
            raise RigError(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")
        return done.stdout
