"""Links that are down, slow or hot; a switch with no link left is told once, not a line a link."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tui.rows.heatmap import SLOW
from tui.text import Line, count, fit, fit_middle, percent, plural, section
from twin.snapshot import DOWN, UP, Snapshot
from twin.units import show_speed

HOT = 0.9  # a link this busy is where queues begin to build


@dataclass(frozen=True, slots=True)
class Trouble:
    """word: `down`, `slow` or `hot`. says: speed now of designed, or the load."""

    word: str
    name: str
    says: str


@dataclass(frozen=True, slots=True)
class Troubles:
    rows: tuple[Trouble, ...]  # the first ones
    down: int
    slow: int
    hot: int
    entries: int  # rows there would be in all


def troubled_links(snapshot: Snapshot, plane: int | None, most: int, switch: int | None = None) -> Troubles:
    """The worst links of a plane first: dead switches, links down, slow, hot.

    plane: a row, -1 for links of no plane, None for all. switch: only the links of this one, each by itself.
    """
    topology = snapshot.topology
    links = topology.links
    mine = of_plane(snapshot, plane)
    state = snapshot.link_state
    down = mine & (state == DOWN)
    with np.errstate(invalid="ignore"):
        slow = mine & (state == UP) & (snapshot.link_speed < SLOW * links.speed)
        hot = mine & (state == UP) & (snapshot.link_load >= HOT) & ~slow
    switches = len(topology.switches.name)
    ends = [topology.ports.switch[end] if len(end) else np.zeros(0, np.int32) for end in (links.a, links.b)]
    if switch is not None:
        here = (ends[0] == switch) | (ends[1] == switch)
        mine, down, slow, hot = mine & here, down & here, slow & here, hot & here
    total, lost = np.zeros(switches, np.int64), np.zeros(switches, np.int64)
    for end in ends:
        total += np.bincount(end[end >= 0], minlength=switches)
        lost += np.bincount(end[(end >= 0) & down], minlength=switches)
    dead = (total > 1) & (lost == total) & (switch is None)
    told = np.zeros(len(mine), bool)
    for end in ends:
        told |= np.append(dead, False)[end]
    single = np.flatnonzero(down & ~told)
    crawling = np.flatnonzero(slow)
    busy = np.flatnonzero(hot)
    busy = busy[np.argsort(-snapshot.link_load[busy], kind="stable")]
    rows = [
        Trouble("down", topology.switches.name[s], f"all {plural(int(total[s]), 'link')}")
        for s in np.flatnonzero(dead)[:most]
    ]
    for word, found in (("down", single), ("slow", crawling), ("hot", busy)):
        shown = found[: max(0, most - len(rows))].tolist()
        rows += [Trouble(word, topology.link_name(k), _says(snapshot, k, word)) for k in shown]
    entries = int(dead.sum()) + len(single) + len(crawling) + len(busy)
    return Troubles(tuple(rows), int(down.sum()), int(slow.sum()), int(hot.sum()), entries)


def _says(snapshot: Snapshot, link: int, word: str) -> str:
    designed = show_speed(float(snapshot.topology.links.speed[link]))
    if word == "down":
        return f"of {designed}b/s"
    if word == "slow":
        return f"{show_speed(float(snapshot.link_speed[link]))} of {designed}b/s"
    return f"{percent(float(snapshot.link_load[link]))} of {designed}b/s"


_LOOK = {"down": ("■", "crit"), "slow": ("▲", "warn"), "hot": ("▲", "warn")}


def of_plane(snapshot: Snapshot, plane: int | None) -> npt.NDArray[np.bool_]:
    """bool[links]: those of a plane, None for all."""
    of = snapshot.topology.links.plane
    return np.ones(len(of), bool) if plane is None else of == plane


def link_lines(
    snapshot: Snapshot | None, plane: int | None, width: int, height: int, switch: int | None = None
) -> list[Line]:
    """The title with the totals, and as many links as fit."""
    if snapshot is None or height < 1:
        return []
    found = troubled_links(snapshot, plane, max(0, height - 1), switch)
    right: Line = []
    totals = (("down", found.down, "crit"), ("slow", found.slow, "warn"), ("hot", found.hot, "warn"))
    for word, number, style in totals:
        right.append((f"{count(number)} {word}  ", f"{style} bold" if number else "dim"))
    right[-1] = (right[-1][0].rstrip(), right[-1][1])
    lines = [section("LINKS IN TROUBLE", right, width)]
    if not found.rows:
        known = bool((snapshot.link_state[of_plane(snapshot, plane)] >= 0).any())
        said = "● none is down, slow or above 90 % load" if known else "? the state of no link is known"
        return [*lines, [(f" {said}", "ok" if known else "unknown")]][:height]
    says_width = 18
    room = height - 1 if found.entries <= height - 1 else height - 2
    for trouble in found.rows[:room]:
        glyph, style = _LOOK[trouble.word]
        lines.append(
            [
                (f" {glyph} {fit(trouble.word, 6)}", style + " bold"),
                (fit_middle(trouble.name, max(8, min(64, width - 9 - says_width - 1))), "text"),
                (fit(trouble.says, says_width, ">"), "dim"),
            ]
        )
    if found.entries > room:
        lines.append([(f"   +{count(found.entries - room)} more", "dim")])
    return lines[:height]
