"""All GPUs as a table: what each does, what it may draw, what is left of its network and of its NVLink."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tui.filter import Bool, Field, Filterable, Labels, Number, Text
from tui.rows.gpus import share_style
from tui.rows.table import F64, Column, Rows, Table, share, stale_after, state_counts
from tui.text import Span, age
from tui.theme import GLYPH
from twin.catalog import hardware
from twin.detectors.gpu_tell import REASONS
from twin.detectors.gpus import BAD_REASONS
from twin.snapshot import DOWN, UP, Snapshot
from twin.topology.model import Topology
from twin.whatif.state import gpu_limits

# (word, glyph, style) of each state, the worst last; a GPU with several is shown in the worst
STATES: tuple[tuple[str, str, str], ...] = (
    ("ok", GLYPH["ok"], "ok"),
    ("unknown", GLYPH["unknown"], "unknown"),
    ("stale", GLYPH["unknown"], "warn"),
    ("straggler", GLYPH["warning"], "warn"),
    ("throttled", GLYPH["warning"], "warn"),
    ("error", GLYPH["warning"], "crit"),
    ("lost", GLYPH["critical"], "crit"),
)
_OK, _UNKNOWN, _STALE = 0, 1, 2
_OF_KIND = {"telemetry_stale": _STALE, "gpu_straggler": 3, "gpu_throttled": 4, "gpu_error": 5, "gpu_lost": 6}
HOT = 0.9  # of its power limit: marked, since a GPU at its limit is slowed


@dataclass(frozen=True)
class GpuIndex:
    """What the wiring says of GPUs; made once a topology."""

    topo: Topology

    @cached_property
    def limit(self) -> F64:
        """float64[gpus], W as the catalogue has it, NaN unknown."""
        return gpu_limits(self.topo)

    @cached_property
    def memory(self) -> F64:
        """float64[gpus], bytes each has, NaN where the catalogue does not know."""
        table = hardware()["gpu"]
        sizes = [float(table.get(model, {}).get("memory_bytes", np.nan)) for model in self.topo.nodes.gpu_model]
        return np.array(sizes, dtype=np.float64)[self.topo.gpus.node]

    @cached_property
    def nvlinks(self) -> tuple[Rows, Rows]:
        """First NVLink of each GPU, and the one after its last."""
        end = np.cumsum(self.topo.nvlinks_per_gpu, dtype=np.intp)
        return end - self.topo.nvlinks_per_gpu, end

    def over_nvlinks(self, values: np.ndarray) -> F64:
        """float64[gpus], sums over the NVLinks of each GPU. values: [nvlinks], none of them NaN."""
        first, end = self.nvlinks
        each = int(end[0] - first[0]) if len(first) else 0
        if each and (end - first == each).all():  # nearly always, and ten times as fast
            return np.asarray(values.reshape(-1, each).sum(1, dtype=np.float64))
        total = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
        sums: F64 = total[end] - total[first]
        return sums

    @cached_property
    def longest(self) -> int:
        return max(map(len, self.topo.gpu_names), default=0)

    @cached_property
    def address(self) -> Labels:
        return Labels(self.topo.gpu_names)

    @cached_property
    def names(self) -> Mapping[str, Text]:
        """The names that a filter may ask for."""
        topo, node = self.topo, self.topo.gpus.node
        job = np.full(len(topo.nodes.name), -1, np.intp)
        for row, (_, nodes, _) in enumerate(topo.jobs):
            job[list(nodes)] = row
        models = sorted(set(topo.nodes.gpu_model))
        model = np.array([models.index(m) for m in topo.nodes.gpu_model], dtype=np.intp)
        nics = np.append(topo.nics.rail, -1)[topo.gpus.nic]
        return {
            "node": Text(Labels(topo.nodes.name), node),
            "rack": Text(Labels(topo.racks.name), topo.nodes.rack[node]),
            "domain": Text(Labels(topo.domains.name), topo.gpus.domain),
            "rail": Text(Labels(str(i) for i in range(int(nics.max(initial=-1)) + 1)), nics),
            "job": Text(Labels(name for name, _, _ in topo.jobs), job[node]),
            "model": Text(Labels(models), model[node]),
            "plane": Text(Labels(topo.planes), np.where(self.places(None), np.arange(len(topo.planes)), -1)),
        }

    @cached_property
    def _ports(self) -> tuple[Rows, Rows]:
        """Ports of NICs with a cable in a plane, and the place of each: NIC by plane."""
        ports = self.topo.ports
        mine = np.flatnonzero((ports.nic >= 0) & (ports.plane >= 0) & (ports.link >= 0))
        return mine, ports.nic[mine].astype(np.intp) * len(self.topo.planes) + ports.plane[mine]

    def places(self, links: Bool | None) -> Bool:
        """bool[gpus, planes]: whether the NIC of a GPU has a port there, on one of these links (bool[links])."""
        topo = self.topo
        mine, place = self._ports
        if links is not None:
            place = place[links[topo.ports.link[mine]]]
        has = np.zeros((len(topo.nics.node) + 1, len(topo.planes)), bool)
        has.ravel()[place] = True
        return has[topo.gpus.nic]


_last: list[GpuIndex] = []


def gpu_index(topo: Topology) -> GpuIndex:
    """The index of a topology: that of the last one is kept, since all views ask for the same."""
    if not _last or _last[0].topo is not topo:
        _last[:] = [GpuIndex(topo)]
    return _last[0]


def gpu_states(snapshot: Snapshot) -> np.ndarray:
    """int8[gpus], a row of STATES: what open incidents say of each, else how old what is known of it is."""
    topo = snapshot.topology
    age = snapshot.gpu_age
    states = np.select([np.isnan(age), age > stale_after(snapshot)], [_UNKNOWN, _STALE], _OK).astype(np.int8)
    gpus, nodes = topo.rows("gpu"), topo.rows("node")
    for incident in snapshot.incidents:
        state = _OF_KIND.get(incident.kind)
        if state is None or not incident.is_open or incident.severity == "info":
            continue
        for name in (incident.cause, *incident.affected.names):
            if (gpu := gpus.get(name)) is not None:
                states[gpu] = max(states[gpu], state)
            elif (node := nodes.get(name)) is not None:
                first = int(topo.nodes.gpu0[node])
                mine = states[first : first + int(topo.nodes.n_gpus[node])]
                np.maximum(mine, state, out=mine)
    return states


def nvlink_counts(snapshot: Snapshot, index: GpuIndex) -> tuple[Rows, Rows]:
    """int[gpus] each: NVLinks known to be up, and NVLinks of which that is known, by a reading that is not stale."""
    up = snapshot.nvlink.get("up")
    if up is None or not len(up):
        nothing = np.zeros(len(snapshot.topology.gpus.node), np.intp)
        return nothing, nothing
    fresh = ~(nvlink_age(snapshot, index) > stale_after(snapshot))
    is_up, known = (index.over_nvlinks(mask).astype(np.intp) for mask in (up == 1, ~np.isnan(up)))
    return is_up * fresh, known * fresh


def nvlink_age(snapshot: Snapshot, index: GpuIndex) -> F64:
    """float64[gpus], seconds since the first NVLink of each was read, all of which are read together; NaN never."""
    first, end = index.nvlinks
    out = np.full(len(first), np.nan)
    heard = snapshot.age.get("nvlink")
    if heard is not None and len(heard):
        mine = np.flatnonzero(end > first)
        out[mine] = heard[first[mine]]
    return out


def part(of: Rows, total: Rows) -> F64:
    """of / total, NaN where the total is zero."""
    return np.where(total > 0, of / np.maximum(total, 1), np.nan)


class GpuReadings:
    """The columns of all GPUs in one snapshot, float64[gpus] each, NaN unknown."""

    def __init__(self, snapshot: Snapshot, index: GpuIndex) -> None:
        self.snapshot, self.index = snapshot, index
        n = len(snapshot.topology.gpus.node)
        nothing = np.full(n, np.nan)

        def read(metric: str) -> F64:
            return snapshot.gpu.get(metric, nothing)

        self.use, self.watts, self.heat = read("utilization_ratio"), read("power_watts"), read("temperature_celsius")
        self.clock, self.memory = read("sm_clock_hertz"), read("memory_used_bytes")
        set_limit = read("power_limit_watts")
        self.limit = np.where(np.isnan(set_limit), index.limit, set_limit)
        self.network, self.age = snapshot.gpu_bandwidth, snapshot.gpu_age
        self.nvlink = part(*nvlink_counts(snapshot, index))
        reasons = read("throttle_reasons")
        self.slowed = np.where(np.isnan(reasons), np.nan, np.nan_to_num(reasons).astype(np.int64) & BAD_REASONS)
        self.states = gpu_states(snapshot)

    def asks(self) -> Filterable:
        topo, index, snapshot = self.snapshot.topology, self.index, self.snapshot
        watts, hertz = {"W": 1.0, "kW": 1e3}, {"MHz": 1e6, "GHz": 1e9}
        fields: dict[str, Field] = {
            "util": Number(self.use, whole=1.0, bare="%"),
            "power": Number(self.watts, watts, self.limit),
            "limit": Number(self.limit, watts),
            "temp": Number(self.heat, {"C": 1.0}),
            "clock": Number(self.clock, hertz),
            "mem": Number(self.memory, {"MB": 1e6, "GB": 1e9}, index.memory),
            "net": Number(self.network, whole=1.0, bare="%"),
            "nvlink": Number(self.nvlink, whole=1.0, bare="%"),
            "age": Number(self.age, {"s": 1.0, "m": 60.0, "h": 3600.0}),
            "gpu": Number(topo.gpus.ordinal.astype(np.float64)),
            "state": Text(Labels(word for word, _, _ in STATES), self.states.astype(np.intp)),
            **index.names,
        }
        designed = topo.links.speed
        with np.errstate(invalid="ignore"):
            slow = (snapshot.link_state == UP) & (snapshot.link_speed < 0.99 * designed)
        states = {word: self.states == row for row, (word, _, _) in enumerate(STATES)}
        states["down"], states["slow"] = index.places(snapshot.link_state == DOWN), index.places(slow)
        return Filterable(len(self.states), fields, states, Text(index.address))


def gpu_table(snapshot: Snapshot, index: GpuIndex) -> Table:
    """The table at one moment."""
    topo, r = snapshot.topology, GpuReadings(snapshot, index)
    no_nic, no_nvlink = topo.gpus.nic < 0, topo.nvlinks_per_gpu == 0

    old = np.isin(r.states, (_STALE, _OF_KIND["gpu_lost"]))  # what is shown was last heard

    def tone(row: int, value: float, style: str = "text") -> str:
        return "unknown" if value != value else "dim" if old[row] else style

    def number(values: F64, text: str, size: float = 1.0) -> Callable[[int], Span]:
        def cell(row: int) -> Span:
            value = float(values[row])
            return ("?" if value != value else text.format(value / size)), tone(row, value)

        return cell

    def state(row: int) -> Span:
        word, _, style = STATES[r.states[row]]
        return word, style

    def power(row: int) -> Span:
        drawn, limit = float(r.watts[row]), float(r.limit[row])
        said = f"{drawn:.0f}" if drawn == drawn else "?"
        style = tone(row, drawn, "warn" if drawn > HOT * limit else "text")
        return f"{said}/{limit:.0f} W" if limit == limit else f"{said} W", style

    def memory(row: int) -> Span:
        used, whole = float(r.memory[row]), float(index.memory[row])
        said = f"{used / 1e9:.0f}" if used == used else "?"
        return f"{said}/{whole / 1e9:.0f}G" if whole == whole else f"{said}G", tone(row, used)

    def left(values: F64, none: Bool) -> Callable[[int], Span]:
        def cell(row: int) -> Span:
            value = float(values[row])
            absent = bool(none[row])
            style = "dim" if absent or old[row] else "text" if value >= 0.995 else share_style(value)
            return share(value, absent), style

        return cell

    def use(row: int) -> Span:
        return share(float(r.use[row])), tone(row, float(r.use[row]))

    def heard(row: int) -> Span:
        return age(float(r.age[row])), "warn" if old[row] else "dim"

    def slowed(row: int) -> Span:
        bits = float(r.slowed[row])
        said = ", ".join(word for bit, word in REASONS if not np.isnan(bits) and int(bits) & bit)
        return said or ("?" if np.isnan(bits) else "–"), "warn" if said else "dim"

    def named(name: str) -> tuple[Callable[[int], Span], Callable[[], F64]]:
        """A column of names, sorted as the site has them."""
        text = index.names[name]
        rows = text.rows if text.rows is not None else np.zeros(0, np.intp)

        def cell(row: int) -> Span:
            label = int(rows[row])
            return (text.labels.names[label] if label >= 0 else "–"), "text"

        return cell, lambda: np.where(rows >= 0, rows, np.nan)

    columns = (
        Column("state", "state", 9, state, lambda: r.states.astype(np.float64), align="<"),
        Column("util", "util", 5, use, lambda: r.use),
        Column("power", "power", 11, power, lambda: r.watts),
        Column("temp", "temp", 5, number(r.heat, "{:.0f}C"), lambda: r.heat),
        Column("clock", "GHz", 5, number(r.clock, "{:.2f}", 1e9), lambda: r.clock, least=True, rank=2),
        Column("mem", "memory", 8, memory, lambda: r.memory, rank=3),
        Column("net", "net", 5, left(r.network, no_nic), lambda: r.network, least=True),
        Column("nvlink", "nvlink", 7, left(r.nvlink, no_nvlink), lambda: r.nvlink, least=True),
        Column("age", "age", 7, heard, lambda: r.age, rank=1),
        Column("rack", "rack", 10, *named("rack"), least=True, rank=5, align="<"),
        Column("rail", "rail", 5, *named("rail"), least=True, rank=6),
        Column("domain", "NVLink domain", 14, *named("domain"), least=True, rank=7, align="<"),
        Column("job", "job", 16, *named("job"), least=True, rank=8, align="<"),
        Column("throttle", "slowed by", 24, slowed, lambda: r.slowed, rank=4, align="<"),
    )
    names, rows = topo.gpu_names, topo.rows("gpu")
    return Table(
        title="GPUS", what="GPU", n=len(names), name=names.__getitem__, find=rows.get,
        glyph=lambda row: STATES[r.states[row]][1:], columns=columns, asks=r.asks, longest=index.longest,
        summary=state_counts(r.states, STATES), empty="no GPUs in this fabric",
    )  # fmt: skip
