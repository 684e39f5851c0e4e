"""From a key to what it changes on the screen, in a table of 100,008 GPUs, through a real pseudo-terminal."""

from __future__ import annotations

import os
import pty
import select
import signal
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.benchmarks.measure import compare

RUNS = 15
LIMIT_S = 20.0
GPUS, ROWS = 100_008, 8192
ARROW = "↓".encode()[:2]  # up or down, beside the column that the table is sorted by
OURS = f"""
import asyncio
import numpy as np
from tui.app import FabricApp
from tui.session import Told
from twin.observe import Observer
from twin.topology.builder import Builder
from twin.twin import Twin
from twin.frames import Frame

builder = Builder("many", planes=())
for node in range({GPUS} // 8):
    builder.node(f"n{{node:05d}}", gpus=8, gpu_model="b300", nics=[], first_port=0, ports_per_nic=1)
twin = Twin(builder.build())
names = twin.topology.gpu_names
watts = np.random.default_rng(1).uniform(300, 1100, len(names))
columns = {{"power_watts": watts, "utilization_ratio": watts / 1100, "temperature_celsius": watts / 15}}
for second in range(1, 4):
    twin.ingest(Frame(second * 10**9, "all", "gpu", names, columns))
twin.finish()

class Still(Told):
    mode, title, speed, state, about = "live", "many", None, "", ()
    def reasons(self):
        return {{}}
    async def run(self, publish):
        publish(twin.snapshot())
        await asyncio.Event().wait()

FabricApp(Still(), ascii=False, view="gpus").run()
"""
PEER = f"""
from textual.app import App
from textual.widgets import DataTable
class A(App):
    def compose(self):
        yield DataTable(cursor_type="row")
    def on_mount(self):
        table = self.query_one(DataTable)
        table.add_columns(*(f"column {{i}}" for i in range(9)))
        table.add_rows([[f"r{{row}}-{{i}}" for i in range(9)] for row in range({ROWS})])
A().run()
"""


class Terminal:
    """A program in a terminal of 200x60."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def wait(self, text: bytes) -> float:
        """Seconds until `text` is written."""
        start, seen = time.perf_counter(), b""
        while text not in seen:
            if time.perf_counter() - start > LIMIT_S:
                raise TimeoutError(f"{text!r} was not written, but {seen[-300:]!r}")
            if select.select([self._fd], [], [], 0.05)[0]:
                seen += os.read(self._fd, 1 << 16)
        return time.perf_counter() - start

    def rest(self, quiet: float = 0.25) -> None:
        """Reads until nothing is written for a while."""
        while select.select([self._fd], [], [], quiet)[0]:
            os.read(self._fd, 1 << 16)

    def press(self, key: bytes, text: bytes) -> float:
        os.write(self._fd, key)
        return self.wait(text)


@contextmanager
def running(program: str) -> Iterator[Terminal]:
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", COLUMNS="200", LINES="60", COLORTERM="truecolor")
        os.execv(sys.executable, [sys.executable, "-c", program])
    try:
        yield Terminal(fd)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(fd)


def median_of(terminal: Terminal, keys: list[bytes], text: bytes) -> float:
    """Median seconds from a key until `text`, each key after the screen has come to rest."""
    taken = []
    for turn in range(RUNS):
        terminal.rest()
        taken.append(terminal.press(keys[turn % len(keys)], text))
    return statistics.median(taken)


def run() -> Iterator[str]:
    """from a key to its first change on the screen, 100,008 GPUs; Textual's own table has 8,192 rows of 9 cells"""
    down, page, end, home = b"\x1b[B", b"\x1b[6~", b"\x1b[F", b"\x1b[H"
    with running(PEER) as terminal:
        terminal.wait(b"r0-0")
        peer = median_of(terminal, [down], b"r")
    with running(OURS) as terminal:
        terminal.wait(b"100,008")
        yield compare("a row down", median_of(terminal, [down], "►".encode()), "Textual DataTable, a row down", peer)
        for what, keys, text in (
            ("a page down", [page], "►".encode()),
            ("to either end", [end, home], "►".encode()),
            ("sorted by the next column", [b"s"], ARROW),
            ("sorted the other way round", [b"S"], ARROW),
        ):
            yield f"{what}: {median_of(terminal, keys, text) * 1e3:.1f} ms"
        terminal.rest()
        terminal.press(b"/", b"util")
        terminal.rest()
        terminal.press(b"power>50", b"filter")
        terminal.rest()
        taken = [terminal.press(key, b" of ") for key in (b"%", b"\x7f", b"%", b"\x7f", b"%") if not terminal.rest()]
        yield f"a key in the filter: {statistics.median(taken) * 1e3:.1f} ms"
