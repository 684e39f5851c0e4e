"""One InfiniBand fabric (one plane) through infiniband-diags: a sweep of all ports a sample.

`iblinkinfo -l` gives state, width and speed, `ibqueryerrors --counters` the 64-bit data counters, plain
`ibqueryerrors` the error counters and PortXmitWait; `ibnetdiscover`, less often, the names. No option is
ever used that resets counters. The fabric's own words for a port become its address (twin.topology.ibnames).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from collectors.base import Clock, Collector, CollectorError, Sample, frame_time
from collectors.tools import AT_ONCE, Output, find_tool, run_tool
from twin.address import link_name
from twin.errors import InputError
from twin.frames import Column, Frame, column
from twin.ibtools import complaints, linkinfo, netdiscover, queryerrors
from twin.ibtools.discovery import Discovery
from twin.ibtools.dump import DumpError
from twin.ibtools.speeds import link_rate
from twin.topology.ibnames import Names, name_all

if TYPE_CHECKING:
    from twin.site import Site
    from twin.sitespecs import InfinibandSpec

_DATA = {"PortXmitData": "tx_bytes", "PortRcvData": "rx_bytes"}  # in 4-byte words
_COUNTS = {
    "PortXmitPkts": "tx_packets",
    "PortRcvPkts": "rx_packets",
    "PortXmitDiscards": "tx_discards",
    "PortRcvErrors": "rx_errors",
    "PortXmitWait": "tx_wait_ticks",
    "SymbolErrorCounter": "symbol_errors",
    "LinkDownedCounter": "link_downed",
}
_METRICS = (*_DATA.values(), *_COUNTS.values())
_WORD = 4
_ALL_ONES = (1 << 64) - 1

Row = dict[str, float | int]


class InfinibandFabricCollector:
    """The ports of one fabric. Raises MissingTool at once where infiniband-diags are not installed.

    expected: addresses of the wiring; others are left out, and ports of it that no tool mentions are unknown.
    env: environment of the tools, ca and port: where they enter the fabric.
    """

    def __init__(
        self,
        *,
        name: str = "infiniband",
        expected: Collection[str] | None = None,
        interval: float = 5.0,
        discover_every: float = 60.0,
        timeout: float = 30.0,
        ca: str | None = None,
        port: int | None = None,
        env: Mapping[str, str] | None = None,
        clock: Clock = time.time_ns,
    ) -> None:
        self.name, self.interval = name, interval
        self.deadline = 2 * timeout + 5.0  # a discovery and a sweep, one after the other
        self._expected = None if expected is None else frozenset(expected)
        self._discover_every, self._timeout, self._clock = discover_every, timeout, clock
        self._env = dict(env or {})
        self._way = [*(["-C", ca] if ca else []), *(["-P", str(port)] if port else [])]
        self._tools = {
            tool: find_tool(tool, "infiniband-diags", "to read an InfiniBand fabric", self._env)
            for tool in ("ibnetdiscover", "iblinkinfo", "ibqueryerrors")
        }
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._directory: TemporaryDirectory[str] | None = None  # where the tools may leave files
        self._discovered = 0
        self._names = Names()
        self._port_guids: dict[str, str] = {}
        self._cables: tuple[str, ...] = ()  # that the last discovery saw
        self._known: dict[str, None] = {}  # every address seen, in the order of the first sweep

    async def collect(self) -> Sample:
        """One frame over all ports. Paths that did not answer are warnings; their ports are unknown."""
        began = self._clock()
        warnings: list[str] = []
        discovered = not self._names.switch or began - self._discovered > self._discover_every * 1e9
        if discovered:
            warnings += await self._discover()
            self._discovered = began
        links, data, errors = await asyncio.gather(
            self._run("iblinkinfo", "-l"),
            self._run("ibqueryerrors", "--skip-sl", "--counters"),
            self._run("ibqueryerrors", "--skip-sl"),
        )
        now = frame_time(self._clock)
        rows = self._states(links, warnings)
        self._count(rows, data, warnings)
        self._count(rows, errors, warnings)
        took = (self._clock() - began) / 1e9
        if took > self.interval:
            warnings.append(f"a sweep takes {took:.1f} s, longer than its interval of {self.interval:g} s")
        frames = [self._frame(now, rows)]
        if discovered and self._cables:
            frames.append(Frame(now, self.name, "link", self._cables, {"found": np.ones(len(self._cables))}))
        return Sample(frames, warnings)

    async def close(self) -> None:
        """Removes the directory that the tools ran in."""
        if self._directory is not None:
            self._directory.cleanup()
            self._directory = None

    async def _run(self, tool: str, *options: str) -> Output:
        command = [self._tools[tool], *self._way, *options]
        if self._directory is None:
            self._directory = TemporaryDirectory(prefix="fabrictwin-")
        output = await run_tool(
            command, seconds=self._timeout, env=self._env, cwd=self._directory.name, slots=self._slots
        )
        if output.status < 0:  # ibqueryerrors of infiniband-diags 44 crashes now and then: half an answer is none
            raise CollectorError(f"{tool} crashed (signal {-output.status})")
        return output

    # --- names ---

    async def _discover(self) -> list[str]:
        output = await self._run("ibnetdiscover")
        try:
            found: Discovery = netdiscover.parse(output.stdout)
        except DumpError as problem:
            raise CollectorError(f"ibnetdiscover: {_why(output) or problem}") from problem
        fresh = name_all([found])  # what is away for the moment keeps its name
        self._names.switch |= fresh.switch
        self._names.adapter |= fresh.adapter
        self._port_guids |= found.port_guids
        self._cables = self._found_cables(found)
        return [f"ibnetdiscover: {w}" for w in found.warnings[:3]]

    def _found_cables(self, found: Discovery) -> tuple[str, ...]:
        """The cables of a discovery by address, those that touch the wiring."""
        cables = []
        for link in found.links:
            ends = [self._address(link.a_guid, link.a_port), self._address(link.b_guid, link.b_port)]
            if all(ends):
                cables.append(link_name(str(ends[0]), str(ends[1])))
        return tuple(cables)

    def _address(self, guid: str, port: int) -> str | None:
        """The address of a port where it belongs to the wiring; ports are counted as the wiring counts them."""
        address = self._names.port(self._port_guids.get(guid, guid), port)
        if address is None or self._expected is None:
            return address
        owner = address.rpartition("/")[0]
        if f"{owner}/p0" in self._expected:  # a wiring that counts ports from 0
            address = f"{owner}/p{port - 1}"
        return address if address in self._expected else None

    # --- readings ---

    def _states(self, output: Output, warnings: list[str]) -> dict[str, Row]:
        """State and speed of every port that iblinkinfo lists, by address."""
        heard = complaints.parse(output.stderr)
        if heard.unreachable:
            paths = ", ".join(u.path for u in heard.unreachable[:3])
            warnings.append(f"{len(heard.unreachable)} paths did not answer ({paths}): their ports are unknown")
        try:
            report = linkinfo.parse(output.stdout)
        except DumpError as problem:
            raise CollectorError(f"iblinkinfo: {_why(output) or problem}") from problem
        rows: dict[str, Row] = {}
        for p in report.ports:
            address = self._address(p.guid, p.port)
            if address is None or (self._expected is None and p.peer_guid is None and address not in self._known):
                continue
            row: Row = {"up": 1 if p.active else 0}
            if p.active and (speed := link_rate(p.width, p.speed)) is not None:
                row["speed_bits_per_second"] = speed
            rows[address] = row
        self._known |= dict.fromkeys(rows)
        return rows

    def _count(self, rows: dict[str, Row], output: Output, warnings: list[str]) -> None:
        """Adds counters. A port of a node that was checked, and that is not listed, stands at zero."""
        heard = complaints.parse(output.stderr)
        try:
            report = queryerrors.parse(output.stdout)
        except DumpError as problem:
            warnings.append(f"ibqueryerrors: {_why(output) or problem}: counters are unknown this time")
            return
        silent = {(f.description.strip(), f.port) for f in heard.failed}
        if silent:
            warnings.append(f"counters of {len(silent)} ports could not be read; they are unknown")
        seen = report.by_node(self._port_guids)
        wanted = _DATA if any(n in values for values in seen.values() for n in _DATA) else _COUNTS
        if report.complete and not silent:
            for row in rows.values():
                for metric in wanted.values():
                    row.setdefault(metric, 0)
        for (guid, port), values in seen.items():
            row = rows.get(self._address(guid, port) or "", {})
            for name, value in values.items():
                if name in _DATA:
                    row[_DATA[name]] = value * _WORD & _ALL_ONES
                elif name in _COUNTS:
                    row[_COUNTS[name]] = value

    def _frame(self, now: int, rows: dict[str, Row]) -> Frame:
        names = tuple(self._known)
        nothing: Row = {}
        found = [rows.get(name, nothing) for name in names]
        columns: dict[str, Column] = {
            metric: np.array([row.get(metric, np.nan) for row in found], dtype=np.float64)
            for metric in ("up", "speed_bits_per_second")
        }
        for metric in _METRICS:
            if any(metric in row for row in found):
                columns[metric] = column((row.get(metric) for row in found), counter=True)
        return Frame(now, self.name, "port", names, columns)


def _why(output: Output) -> str:
    """The tool's own reason, one line."""
    heard = complaints.parse(output.stderr)
    if heard.no_subnet_manager:
        return "the fabric has no subnet manager"
    lines = [heard.fatal or "", *heard.other]
    return next((line.strip() for line in lines if line.strip()), "")


def build(spec: InfinibandSpec, site: Site) -> list[Collector]:
    """The collector of one fabric. Raises InputError where the site does not tell which plane it is."""
    plane, topo = spec.plane, site.topology
    if plane is not None and plane not in topo.planes:
        raise InputError(
            f"collectors: infiniband: {topo.name} has no plane {plane!r}; it has {', '.join(topo.planes)}"
        )
    if plane is None and len(topo.planes) > 1:
        raise InputError(
            f"collectors: infiniband: {topo.name} has planes {', '.join(topo.planes)}; say which one this fabric is "
            "(plane: A), one collector a plane"
        )
    row = topo.planes.index(plane) if plane is not None else (0 if topo.planes else -1)
    # what is in no plane (storage) is read by whoever sees it
    mine = [n for n, p in zip(topo.port_names, topo.ports.plane.tolist(), strict=True) if p in (row, -1)]
    name = f"infiniband:{plane}" if plane is not None else "infiniband"
    collector = InfinibandFabricCollector(
        name=name, expected=mine, interval=spec.every, discover_every=spec.discover_every,
        timeout=spec.timeout, ca=spec.ca, port=spec.port, env=spec.env,
    )  # fmt: skip
    return [collector]
