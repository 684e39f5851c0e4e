"""What a what-if answers, as lines: for the screen, and plain for the command."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tui.text import Line, bar, count, fit, fit_middle, percent, plural, rate_of, section, wrap
from twin.units import show_watts
from twin.whatif import Answer, Change, JobChange, Outcome, Sweep
from twin.whatif.figures import Power
from twin.whatif.report import changed_holders, spread

_SHARES, _HOLDERS, _INCIDENTS, _GROUPS = 6, 5, 8, 20  # rows of each at most; more are counted
HEAD = 2  # lines above the rows of a sweep
_GLYPH = {"critical": ("■", "crit"), "warning": ("▲", "warn"), "info": ("○", "info")}


def asked(change: Change) -> str:
    """What was asked, in words: `plane:B and n012 fail, A-leaf-03 at 50 %`."""
    said = []
    for addresses, one, several in ((change.repair, "is repaired", "are repaired"), (change.fail, "fails", "fail")):
        if addresses:
            said.append(f"{_and(addresses)} {one if len(addresses) == 1 else several}")
    said += [f"{address} goes at {percent(share)} of its speed" for address, share in change.degrade]
    if change.limit is not None:
        said.append(f"GPUs may draw {show_watts(change.limit)}")
    return ", ".join(said)


def answer_lines(answer: Answer, width: int) -> list[Line]:
    """Before and after, part by part; what does not change is left out or said in a word."""
    parts = (_bandwidth, _nvlink, _planes, _jobs, _power, _incidents)
    return [line for part in parts for line in part(answer, width)]


def sweep_lines(sweep: Sweep, width: int, *, cursor: int | None = None) -> list[Line]:
    """`HEAD` lines of titles, then a row for outcomes that cost the same, costliest first. cursor: the chosen row."""
    pairs = bool(sweep.outcomes) and len(sweep.outcomes[0].failed) > 1
    what = f"PAIRS OF {sweep.what.upper()}" if pairs else f"EVERY ONE OF {sweep.what.upper()}"
    right = f"{count(len(sweep.outcomes))} of {count(sweep.possible)}, costliest first"
    lines: list[Line] = [section(what, [(right, "dim")], width)]
    groups = sweep.groups
    note = 8 if any(map(_by_nvlink, groups)) else 1
    name = max(12, width - 52 - note)
    head = f"{'how many':>9}  {fit('such as', name)}{'GPUs':>6} {'slowest':>8} {'mean':>7} {'to spare':>9} {'job':>7}"
    lines.append([(head, "dim")])
    lines += [_outcome(alike, name, row == cursor) for row, alike in enumerate(groups[:_GROUPS])]
    if len(groups) > _GROUPS:
        rest = sum(map(len, groups[_GROUPS:]))
        lines.append([(f"{count(rest):>9}  more, of {count(len(groups) - _GROUPS)} kinds, that cost less", "dim")])
    if sweep.skipped:
        lines.append([(f" {count(sweep.skipped)} left out: down already", "dim")])
    lines += [[(f" {part}", "dim")] for part in wrap(sweep.bound, width - 2) if part]
    return lines


def _outcome(alike: list[Outcome], name: int, chosen: bool) -> Line:
    first = alike[0]
    nvlink = _by_nvlink(alike)
    least, mean = first.nvlink if nvlink else first.gpu
    style = "crit" if least <= 0.5 or first.headroom < 0 else "warn" if least < 1 - 1e-9 else "text"
    spare = "–" if first.headroom != first.headroom else _watts(first.headroom)
    job = min((j.fraction for j in first.jobs if j.fraction == j.fraction), default=float("nan"))
    what = " and ".join(first.failed)
    tone = " cursor" if chosen else ""
    return [
        ("►" if chosen else " ", f"accent{tone}"),
        (f"{count(len(alike)):>8}  ", f"text{tone}"),
        (fit_middle(what, name), style + tone),
        (f"{count(first.gpus_affected):>6} {_share(least):>8} {_share(mean):>7}", style + tone),
        (f" {spare:>9} {'–' if job != job else _share(job):>7}", f"text{tone}"),
        (" NVLink" if nvlink else "", f"dim{tone}"),
    ]


def _by_nvlink(alike: list[Outcome]) -> bool:
    """Whether it costs NVLink and nothing of the network: then the shares are those of NVLink."""
    return alike[0].nvlink[0] < 1 - 1e-9 and not alike[0].gpu[0] < 1 - 1e-9


def _bandwidth(answer: Answer, width: int) -> list[Line]:
    losers, gainers = int(answer.losers.sum()), int(answer.gainers.sum())
    total = len(answer.after.gpu)
    right: Line = [(f"{count(losers)} of {plural(total, 'GPU')} lose", "crit" if losers else "ok")]
    if gainers:
        right.append((f", {count(gainers)} gain", "ok"))
    lines = [section("NETWORK BANDWIDTH OF GPUS", right, width), *_spread(answer.before.gpu, answer.after.gpu, width)]
    if off := int(answer.after.cut_off.sum()):
        lines.append([(f"           {plural(off, 'GPU')} cut off from the network", "crit")])
    return lines


def _nvlink(answer: Answer, width: int) -> list[Line]:
    if np.array_equal(answer.before.nvlink, answer.after.nvlink, equal_nan=True):
        return []
    return [section("NVLINK OF GPUS", [], width), *_spread(answer.before.nvlink, answer.after.nvlink, width)]


def _spread(before: np.ndarray, after: np.ndarray, width: int) -> list[Line]:
    """How many GPUs have which share, the least first."""
    was, now = spread(before)["by_fraction"], spread(after)["by_fraction"]
    shares = sorted({*was, *now}, key=float)
    if not shares:
        return [[(" none has any", "dim")]]
    total, size = sum(now.values()), max(8, width - 46)
    lines: list[Line] = []
    for share in shares[:_SHARES]:
        value, has, had = float(share), now.get(share, 0), was.get(share, 0)
        style = "crit" if value <= 0.5 else "warn" if value < 1 else "ok"
        lines.append(
            [(f"{_share(value):>9}  ", style), *bar(has / total, size, style), (f"{plural(has, 'GPU'):>12}", "text"),
             ("" if has == had else f"   before {count(had)}", "dim")]
        )  # fmt: skip
    if len(shares) > _SHARES:
        lines.append([(f"           and {len(shares) - _SHARES} more shares", "dim")])
    return lines


def _planes(answer: Answer, width: int) -> list[Line]:
    before, after = answer.before, answer.after
    lines: list[Line] = []
    for p, name in enumerate(answer.topo.planes):
        was, now = float(before.plane[p]), float(after.plane[p])
        style = "ok" if now > was else "text" if now == was else "crit" if now < 0.02 else "warn"
        down = int(after.links_down[p])
        lines.append(
            [(f" {fit_middle(name, 9)} ", "text bold"), (f"{_share(was):>7} → {_share(now):<8}", style),
             (f"bisection {rate_of(float(after.bisection[p])):>10}", "text"),
             (f"   {plural(down, 'link')} down" if down else "", "dim")]
        )  # fmt: skip
    return [section("PLANES", [("capacity before → after", "dim")], width), *lines] if lines else []


def _jobs(answer: Answer, width: int) -> list[Line]:
    if not answer.jobs:
        return []
    lines: list[Line] = [section("JOBS", [("bus bandwidth for large messages, predicted", "dim")], width)]
    for job in sorted(answer.jobs, key=lambda j: (j.fraction != j.fraction, j.fraction, j.name))[:_SHARES]:
        lines += _job(job, width)
    if len(answer.jobs) > _SHARES:
        lines.append([(f"           and {len(answer.jobs) - _SHARES} more jobs that lose no more", "dim")])
    return lines


def _job(job: JobChange, width: int) -> list[Line]:
    style = "text" if not job.fraction < 1 - 1e-9 else "crit" if job.fraction <= 0.5 else "warn"
    rate = f"{job.before.bus_bandwidth / 1e9:.0f} → {job.after.bus_bandwidth / 1e9:.0f} GB/s"
    head: Line = [
        (f" {fit_middle(job.name, 18)} {job.before.collective} ({job.before.algorithm})  ", "text"),
        (rate, style),
        (f"  {_share(job.fraction)}", style + " bold"),
    ]
    if job.lost:
        return [head, [(f"   stops: {plural(job.lost, 'GPU')} of it lost", "crit")]]
    if job.after.link and job.fraction < 1 - 1e-9:
        return [head, [(fit(f"   {job.after.link} sets the pace", width).rstrip(), "dim")]]
    return [head]


def _power(answer: Answer, width: int) -> list[Line]:
    rows = changed_holders(answer).tolist()
    if not rows:
        return []
    model = answer.meter.power_model
    lines: list[Line] = [section("POWER", [("draws · to spare · to spare after one more loss", "dim")], width)]
    for holder in rows[:_HOLDERS]:
        was, now = _spare(answer.before.power, holder), _spare(answer.after.power, holder)
        style = "crit" if now[0] < 0 else "warn" if now[1] < 0 else "text"
        load = float(answer.after.power.load[holder])
        line: Line = [(f" {fit_middle(model.name(holder), 14)} ", "text bold"), (f"{_watts(load):>8}  ", "text")]
        line += [(f"  {_watts(one):>8} → {_watts(other):<8}", style) for one, other in zip(was, now, strict=True)]
        lines.append(line)
    if len(rows) > _HOLDERS:
        lines.append([(f"           and {count(len(rows) - _HOLDERS)} more nodes and racks", "dim")])
    return lines


def _spare(power: Power, holder: int) -> tuple[float, float]:
    return float(power.headroom[holder]), float(power.headroom_after_next[holder])


def _incidents(answer: Answer, width: int) -> list[Line]:
    lines: list[Line] = [section("INCIDENTS THAT WOULD FOLLOW", [], width)]
    for incident in answer.incidents[:_INCIDENTS]:
        glyph, style = _GLYPH[incident.story.severity]
        lines.append([(f" {glyph} ", f"{style} bold"), (f"{incident.kind.replace('_', ' ')}  ", f"{style} bold"),
                      (incident.cause, "text bold")])  # fmt: skip
        lines += [[(f"   {part}", "text")] for part in wrap(incident.story.summary, width - 4)]
    if len(answer.incidents) > _INCIDENTS:
        lines.append([(f"   and {len(answer.incidents) - _INCIDENTS} more", "dim")])
    if not answer.incidents:
        lines.append([(" ● none", "ok")])
    lines += [[(" ● ends: ", "ok"), (f"{kind.replace('_', ' ')}  {cause}", "text")] for kind, cause in answer.ended]
    return lines


def _share(value: float) -> str:
    """A share with a digit where it needs one."""
    whole = value != value or abs(100 * value - round(100 * value)) < 0.05
    return percent(value, 0 if whole else 1)


def _watts(value: float) -> str:
    """Watts in three figures, `?` where unknown."""
    if value != value:
        return "?"
    shown = show_watts(abs(float(f"{value:.3g}")))
    return f"-{shown}" if value < 0 else shown


def _and(addresses: Sequence[str]) -> str:
    shown = list(addresses[:4])
    if len(addresses) > 4:
        shown = [*addresses[:3], f"{len(addresses) - 3} more"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
