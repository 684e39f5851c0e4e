"""One host from `nvidia-smi topo -m`: its GPUs, its NICs, which are near each other, and the NVLinks between GPUs."""

from __future__ import annotations

import re

from twin.errors import InputError
from twin.topology.importers.hostfacts import HostFacts, nearest
from twin.topology.importers.source import shown

_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
_GPU = re.compile(r"GPU(\d{1,3})")
_LEGEND = re.compile(r"\s*(NIC\d{1,4}):\s*(\S+)\s*")
_NVLINK = re.compile(r"NV(\d{1,2})")
_DISTANCE = {"PIX": 0, "PXB": 1, "PHB": 2, "NODE": 3, "SYS": 4}
_CELLS = {*_DISTANCE, "X", "N/A", "OK", "CNS", "NS", "GNS", "TNS", "DR", "U", "PSB", "C2C", "SOC"}
_FAR = _DISTANCE["SYS"]
MOST_LINKS = 18  # that a GPU of any generation has; more to its peers together means that they go through switches


def parse(text: str, path: str) -> HostFacts:
    """What one host's matrix says. Raises InputError with the line."""
    lines = _ESCAPE.sub("", text).split("\n")
    heads = [line.split("CPU Affinity")[0].split() for line in lines]
    start = next((i for i, head in enumerate(heads) if head and _GPU.fullmatch(head[0]) and _is_header(head)), None)
    if start is None:
        raise InputError(f"{path}:1: expected a line of column heads GPU0 GPU1 …, as `nvidia-smi topo -m` prints")
    columns = heads[start]
    rows = _rows(lines, start, columns, path)
    gpus = [c for c in columns if _GPU.fullmatch(c)]
    nics = [c for c in columns if not _GPU.fullmatch(c)]
    missing = [gpu for gpu in gpus if gpu not in rows]
    if missing:
        raise InputError(f"{path}:{len(lines)}: the line of {missing[0]} is missing: cut short?")
    names = {m[1]: m[2] for line in lines if (m := _LEGEND.fullmatch(line))}
    return _facts(rows, columns, gpus, nics, names)


def _is_header(columns: list[str]) -> bool:
    return all(_NVLINK.fullmatch(c) is None and c not in _CELLS for c in columns)


def _rows(lines: list[str], start: int, columns: list[str], path: str) -> dict[str, list[str]]:
    """Row label -> a cell a column."""
    if len(set(columns)) != len(columns):
        raise InputError(f"{path}:{start + 1}: a column stands twice")
    rows: dict[str, list[str]] = {}
    for number, line in enumerate(lines[start + 1 :], start + 2):
        tokens = line.split()
        if not tokens or tokens[0] not in columns:
            if rows and tokens and tokens[0] == "Legend:":
                break
            continue
        cells = tokens[1 : len(columns) + 1]
        if len(cells) < len(columns):
            raise InputError(f"{path}:{number}: expected {len(columns)} cells after {tokens[0]}, found {len(cells)}")
        for cell in cells:
            if cell not in _CELLS and _NVLINK.fullmatch(cell) is None:
                raise InputError(
                    f"{path}:{number}: {shown(cell)} is no connection; expected NV18, PIX, SYS or the like"
                )
        if tokens[0] in rows:
            raise InputError(f"{path}:{number}: a second line of {tokens[0]}; expected the output of one host")
        rows[tokens[0]] = cells
    return rows


def _facts(
    rows: dict[str, list[str]], columns: list[str], gpus: list[str], nics: list[str], names: dict[str, str]
) -> HostFacts:
    usable = [nic for nic in nics if "bond" not in names.get(nic, nic)]
    at = {column: i for i, column in enumerate(columns)}
    distances = [[_DISTANCE.get(rows[gpu][at[nic]], _FAR) for nic in usable] for gpu in gpus]
    chosen = nearest(distances, len(usable), _FAR)
    facts = HostFacts(len(gpus), [names.get(nic, nic) for nic in usable], chosen)
    if usable and chosen is None:
        facts.notes.append("nvidia-smi: all NICs are SYS to all GPUs, so it does not tell which NIC is whose")
    elif chosen is not None:
        gpu = next(i for i, nic in enumerate(chosen) if nic >= 0)
        cell = rows[gpus[gpu]][at[usable[chosen[gpu]]]]
        facts.notes.append(
            f"the NIC of a GPU is the nearest in nvidia-smi: {gpus[gpu]} and {facts.nics[chosen[gpu]]} are {cell}"
        )
    if len(usable) < len(nics):
        facts.notes.append(f"nvidia-smi: {len(nics) - len(usable)} bonded NICs are taken not to carry GPU traffic")
    links = [[int(m[1]) if (m := _NVLINK.fullmatch(rows[a][at[b]])) else 0 for b in gpus] for a in gpus]
    facts.groups = nvlink_groups(links)
    return facts


def nvlink_groups(links: list[list[int]]) -> list[tuple[list[int], int]]:
    """GPUs that NVLinks join, and the links each has. links: GPU x GPU; through switches the same to every peer."""
    group = list(range(len(links)))
    for a, row in enumerate(links):
        for b, count in enumerate(row):
            if count and group[a] != group[b]:
                old, new = max(group[a], group[b]), min(group[a], group[b])
                group = [new if g == old else g for g in group]
    out = []
    for g in sorted(set(group)):
        members = [i for i, mine in enumerate(group) if mine == g]
        if len(members) > 1:
            total = max(sum(links[i]) for i in members)
            out.append((members, total if total <= MOST_LINKS else max(max(links[i]) for i in members)))
    return out
