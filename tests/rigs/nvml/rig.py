"""Builds the stand-in for NVML and writes the file that tells it what to answer.

Lines of the file, one a fact; those before the first `gpu` hold for the library and for every GPU:

    gpu 3                              what follows is of the GPU at this index
    text uuid|pci|name|serial|part|chassis|driver …        the rest of the line, as it is
    put utilization|memory|temperature|power|limit|clock|reasons|mig|events|fabric|platform|other N…
    field ID SCOPE TYPE VALUE          SCOPE: 4, 0-17, all (the total), * (every one); TYPE `error` with a code
    grow ID SCOPE N                    adds N a second to a value, from when NVML was opened, anew after a reload
    remote LINK TYPE PCI               the far end of a link
    event ID TYPE DATA                 given once, to who registered before
    error FUNCTION CODE · delay FUNCTION MILLISECONDS      FUNCTION * is every one
    count N · chunk N · reload N [CODE] · static
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

SCRIPT = "NVML_STANDIN_SCRIPT"
SONAME = "libnvidia-ml.so.1"
SOURCE = Path(__file__).with_name("standin.c")
NOT_SUPPORTED, LOST, NEEDS_RESET = 3, 15, 16
GEN4, GEN5 = 6, 7  # NVML_NVLINK_VERSION_4_0, _5_0


def build(folder: Path, *, old: bool = False) -> Path:
    """The compiled stand-in in `folder`. old: without functions that came with later drivers."""
    out = folder / SONAME
    options = ["-DOLD_LIBRARY"] if old else []
    command = ["cc", "-shared", "-fPIC", "-O2", f"-Wl,-soname,{SONAME}", *options, "-o", str(out), str(SOURCE)]
    subprocess.run([*command, "-lpthread"], check=True, capture_output=True, timeout=60)
    return out


@dataclass
class FakeGpu:
    """lines: what is said of it, in order; a later line replaces an earlier one."""

    lines: list[str] = field(default_factory=list)

    def say(self, *lines: str) -> FakeGpu:
        self.lines.extend(lines)
        return self


def gpu(index: int, *, gen: int = GEN4, links: int = 18, name: str | None = None, pci: str | None = None) -> FakeGpu:
    """A healthy GPU as an H100 (gen 4) or a GB200 (gen 5) answers; numbers tell GPU, link and direction apart."""
    five = gen == GEN5
    pci = pci or f"00000000:{0x10 + index:02X}:00.0"
    one = FakeGpu()
    one.say(
        f"text uuid GPU-{index:08d}-0000-0000-0000-000000000000", f"text pci {pci}",
        f"text name {name or ('NVIDIA GB200' if five else 'NVIDIA H100 80GB HBM3')}",
        f"text serial {1650000000001 + (index // 2 if five else index)}", "text part 900-2G548-A801-000",
        f"put utilization {40 + index}", f"put memory 85899345920 629145600 64424509440 {20845690880 + index}",
        f"put temperature {30 + index}", "put power 999000", "put limit 700000", "put clock 1980", "put reasons 4",
        "put mig 0", "put events 0xC008", "put fabric 3 0 0 0 0 0 0",
        f"field 91 0 uint {links}", f"field 185 0 uint {500_000 + index}", f"field 186 0 uint {510_000 + index}",
        "field 190 0 uint 700000", f"field 83 0 ull {7_000_500 + index}", "field 4 0 ull 2",
        f"field 197 0 ull {2**40 + index}", f"field 198 0 ull {2**41 + index}", "field 230 0 uint 0",
    )  # fmt: skip
    for k in range(links):
        base = index * 1000 + k
        one.say(f"remote {k} 2 00000008:00:{k:02X}.0", f"field 165 {k} uint 1", f"field 166 {k} uint {gen}")
        one.say(f"field 164 {k} uint {53125 if five else 26562}")
        if five:
            one.say(f"field 202 {k} ull {2**50 + base}", f"field 204 {k} ull {2**51 + base}")
            one.say(f"field 215 {k} ull {k}", f"field 221 {k} ull {2 * k}", f"field 220 {k} ull {0xFFF}")
        else:
            one.say(f"field 138 {k} ull {2**40 + base}", f"field 139 {k} ull {2**41 + base}")
            one.say(f"field 163 {k} uint {k}", f"field 161 {k} uint {2 * k}", f"field 162 {k} uint {3 * k}")
    if five:
        cluster = 0x0123_4567_89AB_CDEF
        module = (2, 1, 4, 3)[index % 4]  # as a GB200 tray counts them
        one.say("put fabric 3 0 2 0 1 " + f"{cluster:#x} {1:#x}", f"put platform 14 4 1 0 {module}")
        one.say("text chassis 1820000000001", "field 185 1 uint 467170", "field 190 1 uint 2500000")
    return one


class Standin:
    """The library in this process, and its file. Loaded once a process: the loader finds it again by its name."""

    def __init__(self, library: Path, script: Path) -> None:
        self.script = script
        os.environ[SCRIPT] = str(script)
        ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
        self._library = ctypes.CDLL(SONAME)  # the one that everybody in this process gets, should there be two
        self._library.standin_calls.restype = self._library.standin_open.restype = ctypes.c_long
        self._library.standin_entries.restype = ctypes.c_long
        self._library.standin_reset()
        self.gpus: list[FakeGpu] = []
        self.head: list[str] = ["text driver 580.173.02"]

    def write(self, gpus: Iterable[FakeGpu] | None = None, *head: str) -> None:
        """Says all anew: `gpus` (those of before where None) in the order of their index, after lines for all."""
        self.gpus = self.gpus if gpus is None else list(gpus)
        parts = [*self.head, *head]
        for index, one in enumerate(self.gpus):
            parts += [f"gpu {index}", *last_said(one.lines)]
        fresh = self.script.with_suffix(".new")
        fresh.write_bytes("\n".join([*parts, ""]).encode("utf-8", "surrogateescape"))
        fresh.replace(self.script)

    def calls(self, function: str) -> int:
        return int(self._library.standin_calls(function.encode()))

    @property
    def open(self) -> int:
        """How many nvmlInit have no nvmlShutdown yet."""
        return int(self._library.standin_open())

    @property
    def entries(self) -> int:
        """How many field values were asked for."""
        return int(self._library.standin_entries())


def last_said(lines: Iterable[str]) -> list[str]:
    """`put` and `text` lines of which a later one with the same name exists are left out."""
    kept: dict[str, str] = {}
    for number, line in enumerate(lines):
        words = line.split(" ", 2)
        kept.pop(key := " ".join(words[:2]) if words[0] in ("put", "text") else str(number), None)
        kept[key] = line
    return list(kept.values())
