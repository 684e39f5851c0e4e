"""A real InfiniBand fabric in software: `ibsim` answers management packets, `opensm` manages the subnet.

The tools of infiniband-diags talk to it as to hardware once `IbFabric.env` is in their environment. One
`IbFabric` is one plane (ibsim has a single table of LIDs), so two planes are two of them. No traffic flows but
management packets, and those do count: a counter that a test sets goes on rising a little.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
import sysconfig
import tempfile
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import IO, Self

PACKAGES = {
    "ibsim": "ibsim-utils",
    "opensm": "opensm",
    "ibnetdiscover": "infiniband-diags",
    "iblinkinfo": "infiniband-diags",
    "ibqueryerrors": "infiniband-diags",
    "setpriv": "util-linux",
    "timeout": "coreutils",
}
PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"  # where Debian keeps these tools, for everybody
PROMPT = b"sim> "
MAX_CONSOLE_LINE = 126  # ibsim reads 127 bytes at most, the newline among them
MAX_ANSWER = 2**24  # a batch answers with a line a command
CLIENTS = 4  # at once; ibsim has 10 places, opensm's among them
CONSOLE_LIMIT_S = 10.0
STOP_LIMIT_S = 3.0
POLL_S = 0.01
TIMED_OUT = (124, 128 + signal.SIGKILL)  # what `timeout` exits with
OPENSM_CONF = "force_log_flush TRUE\nlog_file {}/opensm.log\nsweep_interval 2\n"
LOGS = ("ibsim.out", "opensm.out", "opensm.log")

Process = asyncio.subprocess.Process
Ends = tuple[int | IO[bytes], int | IO[bytes], int | IO[bytes]]  # stdin, stdout, stderr


class FabricError(RuntimeError):
    """The fabric did not come up, or ibsim refused a command."""


@dataclass(frozen=True)
class Output:
    """What a tool answered. Exit code 1 of `ibqueryerrors` means that errors were found, below 0 a crash."""

    code: int
    stdout: str
    stderr: str


def missing_requirements() -> list[str]:
    """What must be installed first, as a reason to skip; empty where the rig can run."""
    missing = [f"{tool} ({package})" for tool, package in PACKAGES.items() if not _which(tool)]
    return missing if _shim() else [*missing, "libumad2sim.so (libumad2sim0)"]


class IbFabric:
    """`async with IbFabric(netfile, sim_host="H-…") as fabric:` a plane that is up, and gone at the end.

    `sim_host` is the node that tools and subnet manager run on, by node ID or description. The daemons end after
    `lifetime_s` whatever the test does, and with their parent: an ibsim that lost its console would spin.
    """

    def __init__(
        self, netfile: Path, *, sim_host: str, start_limit_s: float = 30.0, lifetime_s: float = 600.0
    ) -> None:
        self.netfile = netfile.resolve()
        self._start_limit_s = start_limit_s
        self._lifetime_s = lifetime_s
        self._console = asyncio.Lock()
        self._places = asyncio.Semaphore(CLIENTS)
        self._ibsim: Process | None = None
        self._opensm: Process | None = None
        self._temporary = tempfile.TemporaryDirectory(prefix="ibsim-")
        self.directory = Path(self._temporary.name)  # tools must run in it: the shim writes ./sys-PID
        self.env = {
            "IBSIM_SOCKNAME": f"ib-{os.getpid()}-{token_hex(4)}",  # an abstract socket, no file
            "SIM_HOST": sim_host,
            "LD_PRELOAD": str(_shim()),
        }

    async def __aenter__(self) -> Self:
        try:
            if missing := missing_requirements():
                raise FabricError(f"install first: {', '.join(missing)}")
            async with asyncio.timeout(self._start_limit_s):
                await self._start_ibsim()
                await self._start_opensm()
                await self.subnet_up(limit_s=self._start_limit_s)
        except BaseException as error:
            logs = self._logs()
            await self._stop()
            if isinstance(error, TimeoutError):
                raise FabricError(f"no subnet within {self._start_limit_s} s{logs}") from error
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stop()

    async def console(self, line: str) -> str:
        """Give ibsim one command; what it printed comes back, without the prompt."""
        if "\n" in line or len(line.encode()) > MAX_CONSOLE_LINE:
            raise ValueError(f"ibsim takes one line of at most {MAX_CONSOLE_LINE} bytes: {line!r}")
        process = self._ibsim
        assert process is not None and process.stdin is not None and process.stdout is not None
        async with self._console, asyncio.timeout(CONSOLE_LIMIT_S):
            process.stdin.write(line.encode() + b"\n")
            try:
                answer = await process.stdout.readuntil(PROMPT)
            except asyncio.IncompleteReadError as end:
                raise FabricError(f"ibsim has ended{self._logs()}") from end
        return answer.removesuffix(PROMPT).decode(errors="replace")

    async def batch(self, lines: Iterable[str]) -> None:
        """Give ibsim many commands in one go: 1,000 take a few milliseconds."""
        script = self.directory / f"batch-{token_hex(4)}"
        script.write_text("".join(f"{line}\n" for line in lines))
        await self._order(f"!{script.name}")
        script.unlink()

    async def unlink(self, node: str, port: int | None = None) -> None:
        """Pull the cable of a port, or all of a node's. LinkDownedCounter does not rise by it."""
        await self._order(f"Unlink {_place(node, port)}")

    async def relink(self, node: str, port: int | None = None) -> None:
        """Plug in again what `unlink` pulled; the ports are active only after the next sweep."""
        await self._order(f"ReLink {_place(node, port)}")

    async def set_counter(self, node: str, port: int, counter: str, value: int) -> None:
        """Set `PortCounters.X` or `PortCountersExtended.X`, at most to the limit of its width."""
        await self._order(f"PerformanceSet {_place(node, port)} {counter}={value}")

    async def set_counters(self, values: Mapping[tuple[str, int, str], int]) -> None:
        """Set many, by node, port and counter, in one batch."""
        await self.batch(
            f"PerformanceSet {_place(node, port)} {counter}={value}"
            for (node, port, counter), value in values.items()
        )

    async def run(self, tool: str, *arguments: str, limit_s: float = 20.0) -> Output:
        """Run a tool of infiniband-diags on this fabric; TimeoutError where it takes longer."""
        async with self._places:
            process = await self._spawn(tool, *arguments, limit_s=limit_s, env=self.env)
            try:
                stdout, stderr = await process.communicate()
            finally:  # reached by a cancelled test as well
                await _end(process)
            code = process.returncode
            assert code is not None
            if code < 0 or code in TIMED_OUT:  # ibqueryerrors crashes now and then, unless with --skip-sl
                await self._free_places()
            if code in TIMED_OUT:
                raise TimeoutError(f"{tool} took longer than {limit_s} s")
        return Output(code, stdout.decode(errors="replace"), stderr.decode(errors="replace"))

    def sweeps(self) -> int:
        """How often the subnet manager has brought the subnet up."""
        log = self.directory / "opensm.log"
        return log.read_text(errors="replace").count("SUBNET UP") if log.exists() else 0

    async def subnet_up(self, after: int = 0, *, limit_s: float = 30.0) -> None:
        """Wait until the subnet manager, as master, has brought the subnet up more than `after` times.

        A test that needs active ports takes `sweeps()` before its change and waits for one more. None comes
        while the subnet manager's own host is cut off: put `sim_host` where the test pulls no cable.
        """
        async with asyncio.timeout(limit_s):
            while self.sweeps() <= after:
                if self._opensm is None or self._opensm.returncode is not None:
                    raise FabricError(f"opensm has ended{self._logs()}")
                await asyncio.sleep(POLL_S)

    async def _order(self, line: str) -> None:
        answer = await self.console(line)
        if refused := re.search(r"^(#|command '|do_cmd_from_file:).*", answer, re.MULTILINE):
            raise FabricError(f"ibsim refused {line!r}: {refused[0]}")

    async def _start_ibsim(self) -> None:
        env = {"IBSIM_SOCKNAME": self.env["IBSIM_SOCKNAME"]}
        self._ibsim = await self._daemon("ibsim", "-s", str(self.netfile), env=env, console=True)
        assert self._ibsim.stdout is not None
        try:
            await self._ibsim.stdout.readuntil(PROMPT)
        except asyncio.IncompleteReadError as end:
            said = end.partial.decode(errors="replace")
            raise FabricError(f"ibsim does not take {self.netfile}: {said}{self._logs()}") from end

    async def _start_opensm(self) -> None:
        (self.directory / "opensm.conf").write_text(OPENSM_CONF.format(self.directory))
        env = self.env | {"OSM_CACHE_DIR": str(self.directory), "OSM_TMP_DIR": str(self.directory)}
        self._opensm = await self._daemon("opensm", "-F", "opensm.conf", env=env)

    async def _daemon(self, tool: str, *arguments: str, env: dict[str, str], console: bool = False) -> Process:
        """Start a daemon; what it says besides its console goes to a file, since a full pipe would stop it."""
        with (self.directory / f"{tool}.out").open("wb") as out:
            ends = (PIPE, PIPE) if console else (DEVNULL, out)
            return await self._spawn(tool, *arguments, limit_s=self._lifetime_s, env=env, ends=(*ends, out))

    async def _spawn(
        self, tool: str, *arguments: str, limit_s: float, env: dict[str, str], ends: Ends = (DEVNULL, PIPE, PIPE)
    ) -> Process:
        """Start a tool that ends after `limit_s` or with this process, at the head of a group of its own."""
        guard = ("setpriv", "--pdeathsig", "TERM", "timeout", f"--kill-after={STOP_LIMIT_S}", f"{limit_s}")
        stdin, stdout, stderr = ends
        return await asyncio.create_subprocess_exec(
            *guard, tool, *arguments,
            stdin=stdin, stdout=stdout, stderr=stderr, limit=MAX_ANSWER,
            cwd=self.directory, env={**os.environ, "PATH": PATH, **env}, start_new_session=True,
        )  # fmt: skip

    async def _free_places(self) -> None:
        """Give back the places at ibsim of tools that were killed or crashed and could not sign off."""
        for client, pid in re.findall(r"Client (\d+): pid (\d+)", await self.console("Attached")):
            if not _alive(pid):
                await self.console(f"X {client}")

    async def _stop(self) -> None:
        if self._opensm is not None:
            await _end(self._opensm)
        if self._ibsim is not None:
            if self._ibsim.stdin is not None and self._ibsim.returncode is None:
                self._ibsim.stdin.write(b"Quit\n")
            await _end(self._ibsim, wait_first=True)
        self._temporary.cleanup()

    def _logs(self) -> str:
        """The end of what the daemons said, for an error."""
        files = [path for name in LOGS if (path := self.directory / name).exists()]
        return "".join(f"\n{path.name}: {path.read_text(errors='replace')[-800:]}" for path in files)


async def _end(process: Process, *, wait_first: bool = False) -> None:
    """See a process and its group out: asked to quit or not, then by TERM, then by KILL."""
    for number in (None if wait_first else signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
        if process.returncode is not None:
            return
        if number is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), STOP_LIMIT_S)


def _place(node: str, port: int | None) -> str:
    return f'"{node}"' if port is None else f'"{node}"[{port}]'


def _alive(pid: str) -> bool:
    return Path(f"/proc/{pid}").exists()


def _which(tool: str) -> str | None:
    return shutil.which(tool, path=PATH)


def _shim() -> Path | None:
    """The library that stands in for the kernel's umad devices, of this machine's architecture."""
    triplet = sysconfig.get_config_var("MULTIARCH") or "*"
    patterns = (f"lib/{triplet}", "lib*", "lib/*")
    found = (path for pattern in patterns for path in sorted(Path("/usr").glob(f"{pattern}/umad2sim/libumad2sim.so")))
    return next(found, None)
