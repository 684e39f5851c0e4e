"""How many rows each part of a view gets, for a size of the terminal. Pure: size in, heights out.

A part with no rows is hidden. Below 80x24 parts go, one by one; nothing is refused.
"""

from __future__ import annotations

from dataclasses import dataclass

WIDE = 140  # columns from which the overview has two columns
BESIDE = 120  # columns from which an incident's page stands beside the list


@dataclass(frozen=True, slots=True)
class Frame:
    """What every view has: the header, the timeline and the keys; `body` rows are left between them."""

    timeline: int
    keys: int
    body: int
    gap: int  # empty rows between sections


def frame(height: int) -> Frame:
    timeline = next((rows for least, rows in ((50, 5), (36, 4), (22, 3), (16, 2), (10, 1)) if height >= least), 0)
    keys = 1 if height >= 6 else 0
    return Frame(timeline, keys, max(1, height - 1 - timeline - keys), 1 if height >= 30 else 0)


@dataclass(frozen=True, slots=True)
class Overview:
    """Rows of each part. charts: rows of the chart under each plane. two_lines: incidents with their summary.

    interfaces: of a host that is watched without a wiring, in the place of planes.
    """

    verdict: int
    planes: int
    charts: int
    gpus: int
    hosts: int
    links: int
    incidents: int
    sources: int
    two_columns: bool
    two_lines: bool
    gap: int
    interfaces: int = 0


def own_host(height: int, wanted: int, gpus: bool, sources: int, troubles: int) -> Overview:
    """Without planes. wanted: rows the interfaces could fill. troubles: sources of which there is more to say."""
    of = frame(height)
    verdict = 1
    left = of.body - verdict - of.gap * (3 + gpus)
    gpu_rows = 3 if gpus and left >= 14 else 0
    source_rows = min(1 + sources, 7) if left >= 20 and sources >= 3 else 1 + min(troubles, 2) if left >= 7 else 0
    left -= gpu_rows + source_rows
    interfaces = max(1, min(wanted, left - min(4, left // 4)))
    return Overview(
        verdict, 0, 0, gpu_rows, 0, 0, max(0, left - interfaces), source_rows, False, False, of.gap, interfaces
    )


def overview(
    width: int, height: int, planes: int, classes: int, sources: int, hosts: int, troubles: int = 0
) -> Overview:
    """planes, classes of GPU bandwidth, sources, hosts: how many there are to show; troubles: as for own_host."""
    of = frame(height)
    verdict = 2 if of.body >= 10 else 1
    planes = max(1, planes)
    if width >= WIDE and of.body >= 20:
        return _two_columns(width, of, verdict, planes, classes, sources, hosts)
    left = of.body - verdict
    table = min(7, 1 + sources) if left >= 34 else 0
    source_rows = table if table >= 4 else 1 + min(troubles, 2 if left >= 15 else 1) if left >= 7 else 0
    gaps = of.gap * 4
    left -= source_rows + gaps
    gpus = 1 + max(2, min(classes, 4 if left >= 15 else 3 if left >= 13 else 2)) if left >= 11 else 0
    plane_rows = min(1 + planes, max(2, left - gpus - 4)) if left >= 5 else 0
    charts = _charts(left - gpus - plane_rows - 9, planes)
    plane_rows += charts * planes
    return Overview(
        verdict, plane_rows, charts, gpus, 0, 0, max(0, left - gpus - plane_rows), source_rows, False, False, of.gap
    )


def _two_columns(
    width: int, of: Frame, verdict: int, planes: int, classes: int, sources: int, hosts: int
) -> Overview:
    left = of.body - verdict - of.gap
    gpus = 1 + max(2, min(classes, 6))
    cells = 32  # at least, a row of the host map
    host_rows = 1 + min(-(-hosts // cells), 8) if left >= 24 and hosts else 0
    rest = left - gpus - host_rows - of.gap * 2
    plane_rows = min(1 + planes, max(2, rest))
    charts = _charts(rest - plane_rows - min(8, left // 5), planes)
    plane_rows += charts * planes
    links = left - gpus - host_rows - plane_rows - of.gap * 3
    source_rows = min(max(4, 1 + sources), 9)
    incidents = left - source_rows - of.gap
    links = links if links >= 4 else 0
    two_lines = incidents >= 13
    return Overview(
        verdict, plane_rows, charts, gpus, host_rows, links, incidents, source_rows, True, two_lines, of.gap
    )


def _charts(room: int, planes: int) -> int:
    """Rows of the chart under each plane: at least three, or none."""
    each = room // planes
    return min(each, 10) if each >= 3 else 0


@dataclass(frozen=True, slots=True)
class Planes:
    strips: int
    charts: int
    map: int
    grid: int
    links: int
    gap: int


def planes(width: int, height: int, count: int, leaves: int, troubles: int, grid: int) -> Planes:
    """The planes view. leaves: rows the map could have; troubles: links to list; grid: rows of one leaf's links."""
    of = frame(height)
    left = of.body
    strips = min(1 + max(1, count), max(2, left // 3)) if left >= 8 else 0
    gaps = of.gap * (2 if strips else 1)
    left -= strips + gaps
    wanted = max(2, leaves + 3 if left >= 6 else leaves + 2)
    least = min(1 + max(1, troubles), max(2, left // 3)) if left >= 8 else 0
    map_rows = max(1, min(wanted, left - least))
    left -= map_rows
    grid_rows = grid if grid and left - grid - of.gap >= min(6, 2 + troubles) else 0
    left -= grid_rows + (of.gap if grid_rows else 0)
    charts = min(8, _charts(left - max(4, min(12, 2 + troubles)), count)) if strips > count > 0 else 0
    left -= charts * max(1, count)
    return Planes(strips + charts * max(1, count), charts, map_rows, grid_rows, left if left >= 2 else 0, of.gap)
