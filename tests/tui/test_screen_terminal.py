"""A real terminal: whatever ends or stops the screen, the terminal is given back as it was found."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import random
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

PATIENCE_S = 30.0
# Private modes and what they are where no program has touched them: cursor and line wrap on, all else off.
MODES = {1049: "l", 25: "h", 7: "h", 1000: "l", 1002: "l", 1003: "l", 1006: "l", 1015: "l", 1004: "l", 2004: "l"}
DEMO = [sys.executable, "-m", "tui.main", "demo", "--preset", "rtx-pro-6000"]


class Terminal:
    """A command on a pseudo-terminal of its own, 80 by 24, in a home of its own."""

    def __init__(self, command: list[str], home: Path) -> None:
        self.control, self._line = pty.openpty()
        self.resize(80, 24)
        self.before = termios.tcgetattr(self._line)
        self.seen = b""
        env = {
            "PATH": os.environ["PATH"], "PYTHONPATH": str(Path(__file__).parents[2]), "TERM": "xterm-256color",
            "LANG": "C.UTF-8", "XDG_CONFIG_HOME": str(home), "XDG_STATE_HOME": str(home / "state"),
        }  # fmt: skip
        self.process = subprocess.Popen(
            command, stdin=self._line, stdout=self._line, stderr=self._line, env=env, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip

    def resize(self, width: int, height: int) -> None:
        fcntl.ioctl(self._line, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def send(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)

    def type(self, keys: bytes) -> None:
        os.write(self.control, keys)

    def wait(self, true: Callable[[], bool], what: str) -> None:
        """Reads what the command writes until `true`."""
        end = time.monotonic() + PATIENCE_S
        while not true():
            if select.select([self.control], [], [], 0.05)[0]:
                self.seen += os.read(self.control, 65536)
            if time.monotonic() > end:
                pytest.fail(f"{what} did not come; the end of what it wrote: {self.seen[-600:]!r}")

    def wait_for(self, text: bytes) -> None:
        """Waits for text that was not there before."""
        start = len(self.seen)
        self.wait(lambda: text in self.seen[start:], repr(text))

    def end(self) -> int:
        """The exit code, once it has ended."""
        self.wait(lambda: self.process.poll() is not None, "the end")
        self.drain()
        assert self.process.returncode is not None
        return self.process.returncode

    def drain(self) -> None:
        while select.select([self.control], [], [], 0.05)[0]:
            self.seen += os.read(self.control, 65536)

    def stopped(self) -> bool:
        state = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state == "T"

    def modes(self) -> dict[int, str]:
        """The private modes as the terminal has them now."""
        found = dict(MODES)
        for numbers, way in re.findall(rb"\x1b\[\?([\d;]+)([hl])", self.seen):
            found |= {int(n): way.decode() for n in numbers.split(b";") if int(n) in MODES}
        return found

    def is_sane(self) -> bool:
        """As it was found: line settings, private modes, and no keyboard protocol left switched on."""
        pushed, popped = len(re.findall(rb"\x1b\[>\d*u", self.seen)), len(re.findall(rb"\x1b\[<\d*u", self.seen))
        return termios.tcgetattr(self._line) == self.before and self.modes() == MODES and pushed == popped

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self.control)

    def clear(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)
        self.close()
        os.close(self._line)


@pytest.fixture
def screen(tmp_path: Path) -> Iterator[Terminal]:
    """A demo that has drawn its first data."""
    terminal = Terminal(DEMO, tmp_path)
    try:
        terminal.wait(lambda: b"capacity left" in terminal.seen, "the first data")
        assert not terminal.is_sane() and terminal.modes()[1049] == "h" and terminal.modes()[25] == "l"
        yield terminal
    finally:
        terminal.clear()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGINT])
def test_a_signal_that_ends_it_leaves_the_terminal_as_it_was(screen: Terminal, number: signal.Signals) -> None:
    screen.send(number)
    assert screen.end() in (0, 130)
    assert screen.is_sane() and b"Traceback" not in screen.seen


@pytest.mark.parametrize("key", [b"q", b"\x03"])
def test_keys_that_leave_do_so_too_and_the_view_is_remembered(screen: Terminal, key: bytes, tmp_path: Path) -> None:
    screen.type(b"2")
    screen.wait_for(b"leaf")
    screen.type(key)
    assert screen.end() == 0 and screen.is_sane()
    kept = json.loads((tmp_path / "state/fabrictwin/remembered.json").read_text())
    assert kept == {"theme": "dark", "view": "planes"}


@pytest.mark.parametrize("stop", [b"\x1a", signal.SIGTSTP], ids=["ctrl+z", "SIGTSTP"])
def test_a_stop_gives_the_terminal_back_and_going_on_takes_it_again(
    screen: Terminal, stop: bytes | signal.Signals
) -> None:
    screen.type(stop) if isinstance(stop, bytes) else screen.send(stop)
    screen.wait(screen.stopped, "the stop")
    screen.drain()
    assert screen.is_sane()
    screen.send(signal.SIGCONT)
    screen.wait(lambda: screen.modes()[1049] == "h", "the screen")
    screen.wait_for(b"capacity left")  # all of it is drawn again, not just what changed
    screen.type(b"q")
    assert screen.end() == 0 and screen.is_sane()


def test_a_terminal_that_goes_away_ends_it(screen: Terminal) -> None:
    screen.close()
    assert screen.process.wait(PATIENCE_S) is not None


def test_a_storm_of_sizes_ends_with_a_screen_that_answers(screen: Terminal) -> None:
    choose = random.Random(7)
    for _ in range(300):
        screen.resize(choose.randint(1, 300), choose.randint(1, 90))
        screen.drain() if choose.random() < 0.02 else time.sleep(0.001)
    screen.resize(90, 28)
    screen.wait_for(b"\x1b[28;")  # the last row
    screen.type(b"?")
    screen.wait_for(b"the keys of this view")
    screen.type(b"qq")
    assert screen.end() == 0 and screen.is_sane() and b"Traceback" not in screen.seen
