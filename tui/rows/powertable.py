"""Power as a table: racks, feeds, nodes and supplies, what each draws, can give, and has left after one more loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tui.filter import Field, Filterable, Labels, Number, Text
from tui.ring import Ring
from tui.rows.table import F64, Column, Rows, Table, share, stale_after, state_counts, unknown
from tui.text import Line, Span, age, cut, line_width, percent, section, spark, stretch
from tui.theme import GLYPH
from twin.power import PowerModel
from twin.snapshot import Snapshot
from twin.topology.model import Topology
from twin.whatif.state import gpu_limits

# (word, glyph, style) of each state, the worst last
STATES: tuple[tuple[str, str, str], ...] = (
    ("ok", GLYPH["ok"], "ok"),
    ("unknown", GLYPH["unknown"], "unknown"),
    ("at limits", GLYPH["info"], "info"),  # has too little after one more loss only when GPUs draw their limits
    ("no spare", GLYPH["info"], "info"),  # one more loss is too much, and nothing promised that it is not
    ("lost one", GLYPH["warning"], "warn"),
    ("no spare", GLYPH["warning"], "warn"),
    ("down", GLYPH["critical"], "crit"),
    ("over", GLYPH["critical"], "crit"),
)
_OK, _UNKNOWN, _AT_LIMITS, _BARE, _LOST, _NO_SPARE, _DOWN, _OVER = range(len(STATES))
TIGHT = 0.9  # of what it can give: marked
LEGEND = "-1: after one more loss · max: GPUs at their limits"


def watts(value: float) -> str:
    """Watts in three or four figures and at most eight cells: `842 W`, `14.3 kW`, `1.25 MW`; `?` where unknown."""
    if value != value:
        return "?"
    size, unit = next(((s, u) for s, u in ((1e6, "MW"), (1e3, "kW")) if abs(value) >= s * 0.9995), (1.0, "W"))
    shown = value / size
    digits = 0 if unit == "W" or abs(shown) >= 99.95 else 1 if abs(shown) >= 9.995 else 2
    return f"{shown:.{digits}f} {unit}"


KINDS = ("rack", "feed", "node", "supply")
_FEED, _NODE, _SUPPLY = 1, 2, 3


class PowerLayout:
    """The rows of the table: what PowerView has but the site, then supplies. Made once, as long as they are the same.

    kind: int[rows] of KINDS. of: int[rows], the row among the racks, feeds, nodes or supplies of the wiring.
    """

    def __init__(self, topo: Topology, names: tuple[str, ...], kinds: tuple[str, ...], supplies: bool) -> None:
        self.shown, self.supplies = names, supplies
        self.names = names + (topo.psu_names if supplies else ())
        psus = len(self.names) - len(names)
        self.find = {name: row for row, name in enumerate(self.names)}
        self.longest = max(map(len, self.names), default=0)
        self.labels = Labels(self.names)
        self.kind = np.r_[[KINDS.index(kind) for kind in kinds], np.full(psus, _SUPPLY)].astype(np.intp)
        rows = {kind: topo.rows(kind) for kind in KINDS[:3]}
        self.of = np.r_[[rows[k][name] for name, k in zip(names, kinds, strict=True)], np.arange(psus)].astype(
            np.intp
        )
        model = PowerModel(topo)
        spare = np.flatnonzero(model.spare > 0)
        self.promised = np.zeros(len(self.names), bool)  # designed to do without a unit
        self.promised[[self.find[n] for n in map(model.name, spare.tolist()) if n in self.find]] = True


@dataclass
class PowerIndex:
    """What the wiring says of power; made once a topology."""

    topo: Topology
    _layout: PowerLayout | None = None

    @cached_property
    def limit(self) -> F64:
        """float64[gpus], W as the catalogue has it, NaN unknown."""
        return gpu_limits(self.topo)

    def layout(self, snapshot: Snapshot) -> PowerLayout:
        power, supplies = snapshot.power, bool(snapshot.psu)
        names, kinds = power.names[:-1], power.kinds[:-1]  # the site stands above the table
        old = self._layout
        if old is None or old.shown != names or old.supplies != supplies:
            self._layout = old = PowerLayout(self.topo, names, kinds, supplies)
        return old


class PowerReadings:
    """The columns of the table in one snapshot, float64[rows] in W each, NaN unknown.

    left: what is in service less the load; after: the same after one more loss. _at_limits: were the GPUs at their
    power limits. swing: the highest less the lowest load that the screen has seen. states: rows of STATES.
    """

    def __init__(self, snapshot: Snapshot, index: PowerIndex, ring: Ring) -> None:
        self.snapshot, self.layout = snapshot, index.layout(snapshot)
        topo, power, layout = snapshot.topology, snapshot.power, self.layout
        shown, n = len(layout.shown), len(layout.names)
        nothing = np.full(n - shown, np.nan)
        ages = [snapshot.age.get(kind, np.full(len(topo.names(kind)), np.nan)) for kind in ("feed", "node", "psu")]
        self.age = np.full(n, np.nan)  # of a rack nothing is read
        for kind, of in zip((_FEED, _NODE, _SUPPLY), ages, strict=True):
            mine = layout.kind == kind
            self.age[mine] = of[layout.of[mine]]
        old = self.age[shown:] > stale_after(snapshot)  # the twin leaves such readings out of the others itself
        up = np.where(old, np.nan, snapshot.psu.get("up", nothing))
        rating = snapshot.psu.get("capacity_watts", nothing)
        rating = np.where(np.isnan(rating), topo.psus.watts, rating) if n > shown else nothing
        self.down = np.r_[power.capacity[:shown] == 0, up == 0] & np.isin(layout.kind, (_FEED, _SUPPLY))
        draw = np.where(old, np.nan, snapshot.psu.get("output_watts", nothing))
        self.load = np.r_[power.watts[:shown], draw]
        self.capacity = np.r_[power.capacity[:shown], np.where(up == 0, 0.0, rating)]
        self.left = np.where(self.down, np.nan, self.capacity - self.load)
        self.after = np.where(self.down, np.nan, np.r_[power.after_loss[:shown], nothing])
        self.lost = np.r_[power.lost[:shown], np.zeros(n - shown)].astype(np.intp)
        more, more_after, self.site_more = self._more(index)
        self.left_at_limits, self.after_at_limits = self.left - more, self.after - more_after
        ring.note(layout, snapshot.time, np.r_[self.load, power.watts[-1:]])
        self.swing = ring.swing()[:n]
        self.seconds, self.site_past = ring.seconds, ring.rows[:, -1] if len(power.watts) else np.zeros(0)
        self.states = self._states()

    def _more(self, index: PowerIndex) -> tuple[F64, F64, float]:
        """What GPUs at their limits would draw beyond what they draw now: of each row, of each row when one more feed
        is lost, and of the site. A GPU that says nothing of its power where others of its node do counts in full, so
        that one that is lost makes no rack unknown: it is at most that much."""
        topo, kind, of = self.snapshot.topology, self.layout.kind, self.layout.of
        nothing = np.full(len(topo.gpus.node), np.nan)
        limit = self.snapshot.gpu.get("power_limit_watts", nothing)
        limit = np.where(np.isnan(limit), index.limit, limit)
        drawn = self.snapshot.gpu.get("power_watts", nothing)
        known = np.bincount(topo.gpus.node[~np.isnan(drawn)], minlength=len(topo.nodes.name)) > 0
        drawn = np.where(np.isnan(drawn) & known[topo.gpus.node], 0.0, drawn)
        spare = np.maximum(limit - drawn, 0.0)
        node = np.bincount(topo.gpus.node, spare, len(topo.nodes.name)).astype(np.float64)
        racked = topo.nodes.rack >= 0
        rack = np.bincount(topo.nodes.rack[racked], node[racked], len(topo.racks.name)).astype(np.float64)
        more, after = np.full(len(kind), np.nan), np.full(len(kind), np.nan)
        for what, values in ((0, rack), (2, node)):
            more[kind == what] = after[kind == what] = values[of[kind == what]]
        racks = topo.feeds.rack[of[kind == 1]]
        alive = np.bincount(racks[self.capacity[kind == 1] > 0], minlength=len(rack))[racks]  # they share the load
        more[kind == 1] = rack[racks] / np.maximum(alive, 1)
        after[kind == 1] = rack[racks] / np.where(alive > 1, alive - 1, np.nan)
        return more, after, float(node.sum()) if len(spare) else np.nan

    def _states(self) -> Rows:
        promised = self.layout.promised | (self.layout.kind == _FEED)
        with np.errstate(invalid="ignore"):
            conditions = {
                _DOWN: self.down,
                _OVER: self.left < 0,
                _NO_SPARE: (self.after < 0) & promised,
                _LOST: self.lost > 0,
                _BARE: self.after < 0,
                _AT_LIMITS: self.after_at_limits < 0,
                _UNKNOWN: np.isnan(self.load) | np.isnan(self.capacity),
            }
        return np.select(list(conditions.values()), list(conditions), _OK)

    def asks(self) -> Filterable:
        size = {"W": 1.0, "kW": 1e3, "MW": 1e6}
        labels = Labels(dict.fromkeys(word.replace(" ", "-") for word, _, _ in STATES))
        rows = np.array([labels.names.index(word.replace(" ", "-")) for word, _, _ in STATES])[self.states]
        fields: dict[str, Field] = {
            "kind": Text(Labels(KINDS), self.layout.kind),
            "draws": Number(self.load, size, self.capacity),
            "gives": Number(self.capacity, size),
            "left": Number(self.left, size, self.capacity),
            "after": Number(self.after, size, self.capacity),
            "max": Number(self.after_at_limits, size, self.capacity),
            "swing": Number(self.swing, size, self.load),
            "lost": Number(self.lost.astype(np.float64)),
            "state": Text(labels, rows),
        }
        states = {word: rows == row for row, word in enumerate(labels.names)}
        return Filterable(len(rows), fields, states, Text(self.layout.labels))


def power_table(r: PowerReadings) -> Table:
    """The table at one moment."""

    kinds = r.layout.kind

    def amount(values: F64, *, judged: bool = False, none: bool = False) -> Callable[[int], Span]:
        def cell(row: int) -> Span:
            value = float(values[row])
            if value != value and (r.down[row] or kinds[row] == _SUPPLY) and none:
                return "–", "dim"
            return watts(value), unknown(value, "crit" if judged and value < 0 else "text")

        return cell

    def state(row: int) -> Span:
        word, _, style = STATES[r.states[row]]
        return (f"lost {r.lost[row]}" if r.states[row] == _LOST else word), style

    def use(row: int) -> Span:
        return share(float(used[row])), unknown(float(used[row]), "text")

    def heard(row: int) -> Span:
        return ("–" if kinds[row] == 0 else age(float(r.age[row]))), "dim"

    def gauge(row: int) -> Span:
        part = float(used[row])
        if part != part:
            return "?", "unknown"
        style = "crit" if part > 1 else "warn" if part > TIGHT else "area"
        cells = round(min(1.0, part) * 40)
        return "━" * cells + "─" * (40 - cells), style

    def worst() -> F64:
        """By state, and within it by what is left after one more loss as a share of the capacity. What supplies that
        are down bring about stands with their nodes and racks, above them."""
        with np.errstate(invalid="ignore", divide="ignore"):
            margin = np.where(np.isnan(r.after), r.left, r.after) / np.where(r.capacity > 0, r.capacity, np.nan)
        rank: F64 = r.states + 0.5 - np.clip(np.nan_to_num(margin, nan=1.0), -1, 1) / 2.5
        return np.where((kinds == _SUPPLY) & (r.states == _DOWN), _AT_LIMITS - 0.01, rank)

    with np.errstate(invalid="ignore", divide="ignore"):
        used = np.where(r.capacity > 0, r.load / r.capacity, np.nan)
    after, at_limits, both = r.after, r.left_at_limits, r.after_at_limits
    columns = (
        Column("state", "state", 9, state, worst, align="<"),
        Column("kind", "kind", 6, lambda row: (KINDS[kinds[row]], "dim"), lambda: -kinds.astype(np.float64), rank=3,
               align="<"),
        Column("load", "draws", 8, amount(r.load), lambda: r.load),
        Column("use", "use", 5, use, lambda: used, rank=2),
        Column("gives", "gives", 8, amount(r.capacity), lambda: r.capacity, least=True, rank=5),
        Column("left", "left", 8, amount(r.left, judged=True, none=True), lambda: r.left, least=True),
        Column("after", "left -1", 8, amount(after, judged=True, none=True), lambda: after, least=True),
        Column("left@", "at max", 8, amount(at_limits, judged=True, none=True), lambda: at_limits, least=True,
               rank=6),
        Column("max", "max -1", 8, amount(both, judged=True, none=True), lambda: both, least=True, rank=1),
        Column("swing", "swing", 8, amount(r.swing), lambda: r.swing, rank=4),
        Column("age", "age", 7, heard, lambda: r.age, rank=7),
        Column("bar", "use of what it gives", 40, gauge, lambda: used, rank=8, align="<"),
    )  # fmt: skip
    layout = r.layout
    return Table(
        title="POWER", what="", n=len(layout.names), name=layout.names.__getitem__, find=layout.find.get,
        glyph=lambda row: STATES[r.states[row]][1:], columns=columns, asks=r.asks, longest=layout.longest,
        summary=state_counts(r.states, STATES), empty="nothing reports power here",
    )  # fmt: skip


def site_lines(r: PowerReadings, width: int, height: int) -> list[Line]:
    """The whole site: what it draws, may draw, has left, now and with all GPUs at their limits; the last minutes."""
    power = r.snapshot.power
    if not power.names or height < 1:
        return []
    load, capacity = float(power.watts[-1]), float(power.capacity[-1])
    line: Line = [(" draws ", "dim"), (watts(load), unknown(load, "text bold"))]
    if capacity == capacity:
        line += _left(capacity, load)
    else:
        line.append((" (no limit of the site is given)", "dim"))
    at_limits = load + r.site_more
    line += [(" · GPUs at their limits: ", "dim"), (watts(at_limits), unknown(at_limits, "text bold"))]
    if capacity == capacity and at_limits == at_limits:
        line += _left(capacity, at_limits)
    lines = [section("SITE", [(LEGEND, "dim")], width), cut(line, width)]
    past = r.site_past[~np.isnan(r.site_past)]
    if height >= 3 and len(past) > 1:
        low, high = float(past.min()), float(past.max())
        says = f" last {stretch(r.seconds)}: {watts(low)} to {watts(high)}, swing {watts(high - low)} "
        head: Line = [(says, "dim")]
        room = min(120, width - line_width(head) - 12)
        lines.append([*head, *spark(r.site_past, max(0, room), "area", max(high, 1.0)), (f" 0–{watts(high)}", "dim")])
    return lines[:height]


def _left(capacity: float, load: float) -> Line:
    left = capacity - load
    style = "crit bold" if left < 0 else "ok"
    glyph = GLYPH["critical"] if left < 0 else GLYPH["ok"]
    return [(f" of {watts(capacity)} ({percent(load / capacity)}), ", "text"), (f"{glyph} {watts(left)} left", style)]
