"""How long from the command to the first screen, through a real pseudo-terminal."""

from __future__ import annotations

import os
import pty
import select
import signal
import statistics
import sys
import time
from collections.abc import Iterator

from tests.benchmarks.measure import compare

RUNS = 7
LIMIT_S = 20.0
PEER = """
import numpy
from textual.app import App
from textual.widgets import Static
class A(App):
    def compose(self):
        yield Static("READY-TO-READ")
A().run()
"""


def first_text(command: list[str], text: bytes) -> float:
    """Seconds from starting `command` in an 80x24 terminal until it has written `text`."""
    start = time.perf_counter()
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", COLUMNS="80", LINES="24", COLORTERM="truecolor")
        os.execv(command[0], command)
    seen = b""
    try:
        while text not in seen:
            if time.perf_counter() - start > LIMIT_S:
                raise TimeoutError(f"{command} did not show {text!r}; it wrote {seen[-500:]!r}")
            if select.select([terminal], [], [], 0.05)[0]:
                seen += os.read(terminal, 65536)
        return time.perf_counter() - start
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)


def run() -> Iterator[str]:
    """`fabrictwin demo` to its first screen and to its first data, beside a Textual app of one line with numpy."""
    demo = [sys.executable, "-m", "tui.main", "demo"]
    wanted = {
        "first screen": (demo, b"overview"),
        "first data": (demo, b"capacity left"),
        "peer": ([sys.executable, "-c", PEER], b"READY-TO-READ"),
    }
    times: dict[str, list[float]] = {name: [] for name in wanted}
    for _ in range(RUNS):
        for name, (command, text) in wanted.items():
            times[name].append(first_text(command, text))
    peer = statistics.median(times.pop("peer"))
    for name, values in times.items():
        yield compare(f"demo, {name}", statistics.median(values), "one-line Textual app", peer)
