"""Several traces as one, by time: of several hosts, of several monitors, or one after the other."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import Any

import msgspec

from replay.records import Mark, Note, Record, Tally
from replay.trace import Trace
from twin.errors import InputError
from twin.frames import Frame, encode
from twin.topology.explicit import to_wiring
from twin.topology.model import Topology
from twin.topology.wiring import read_wiring
from twin.yamlfile import Document

_LISTS = ("nodes", "switches", "domains", "racks", "jobs")  # of an explicit wiring: things with a name
_REMEMBERED = 8  # frames of one source and kind, to know them again in another trace


class MergedTrace(Trace):
    """Traces read side by side. Each keeps its order of arrival; among them the earlier clock goes first, where a
    trace's clock is the latest time that it has told. Where clocks are equal the source's name decides, so that the
    order in which the traces are named does not matter. What two of them recorded alike counts once.

    Raises InputError where there is none.
    """

    format = "merged"

    def __init__(self, traces: Sequence[Trace], topology: Topology | None = None) -> None:
        if not traces:
            raise InputError("no trace to merge")
        super().__init__(traces[0].path, sum(trace.size for trace in traces), topology)
        self.traces = tuple(traces)

    @cached_property
    def _recorded_topology(self) -> Topology | None:
        return united(self.traces)

    @cached_property
    def site(self) -> dict[str, Any] | None:
        """The first site that was recorded, with the work announced in any of them."""
        sites = [site for trace in self.traces if (site := trace.site) is not None]
        if not sites:
            return None
        if self.rules is None and any((s.get("rules") or {}) != (sites[0].get("rules") or {}) for s in sites):
            raise InputError("the traces were recorded with different rules; choose with --rules FILE")
        work: list[Any] = []
        for site in sites:
            work.extend(w for w in site.get("maintenance") or [] if w not in work)
        return {**sites[0], "maintenance": work} if work else sites[0]

    def _notes_beside(self) -> tuple[list[Note], list[str]]:
        notes: list[Note] = []
        problems: list[str] = []
        for trace in self.traces:
            found, wrong = trace._notes_beside()
            notes.extend(note for note in found if note not in notes)
            problems.extend(wrong)
        return notes, problems

    def _read(self, mark: Mark | None, tally: Tally) -> Iterator[tuple[Mark, Record]]:
        first = mark.offset if mark else 0
        for number, record in islice(enumerate(self._merged()), first, None):
            yield Mark(number), record
        for trace in self.traces:
            tally.truncated |= trace.tally.truncated
            tally.problems.extend(trace.tally.problems)

    def _merged(self) -> Iterator[Record]:
        if len(self.traces) == 1:
            yield from self.traces[0].records()
            return
        heard: dict[tuple[str, ...], deque[tuple[int, bytes]]] = {}
        for _, _, _, number, record in heapq.merge(*(_timed(i, t) for i, t in enumerate(self.traces))):
            key, data = _identity(record)
            lately = heard.setdefault(key, deque(maxlen=_REMEMBERED))
            if not any(said == data and by != number for by, said in lately):
                lately.append((number, data))
                yield record


def _timed(number: int, trace: Trace) -> Iterator[tuple[int, str, int, int, Record]]:
    """Records with what sorts them: clock, source, then something that is never equal."""
    clock = 0
    for place, record in enumerate(trace.records()):
        clock = max(clock, record.time)
        yield clock, record.source if isinstance(record, Frame) else "", place, number, record


def _identity(record: Record) -> tuple[tuple[str, ...], bytes]:
    """What a record is about, and what it says."""
    if isinstance(record, Frame):
        return ("frame", record.source, record.kind), encode(record)
    data = record.to_json()
    return (type(record).__name__, data.decode()), data


# --- one wiring of several ---


def united(traces: Iterable[Trace]) -> Topology:
    """The wiring of all: what several of them name must be the same in each. Raises InputError where it is not."""
    first, *rest = traces
    found = to_wiring(first.topology)
    changed = False
    for trace in rest:
        more = to_wiring(trace.topology)
        if more != found:
            found, changed = _joined(found, more, f"{first.path} and {trace.path}"), True
    return read_wiring(Document("the wiring of all traces", _yaml(found))) if changed else first.topology


def _joined(ours: dict[str, Any], theirs: dict[str, Any], where: str) -> dict[str, Any]:
    out = dict(ours)
    out["planes"] = [*ours["planes"], *(p for p in theirs["planes"] if p not in ours["planes"])]
    problems: list[str] = []
    for part in _LISTS:
        known = {thing["name"]: thing for thing in ours.get(part, ())}
        problems += [f"{part} {t['name']}" for t in theirs.get(part, ()) if known.setdefault(t["name"], t) != t]
        if known:
            out[part] = list(known.values())
    links = {(link["a"], link["b"]): link for link in ours["links"]}
    problems += [
        f"link {link['a']}--{link['b']}"
        for link in theirs["links"]
        if links.setdefault((link["a"], link["b"]), link) != link
    ]
    out["links"] = list(links.values())
    if ours.get("site_watts") != theirs.get("site_watts"):
        out["site_watts"] = ours.get("site_watts") or theirs.get("site_watts")
    if ours["name"] != theirs["name"]:
        out["name"] = f"{ours['name']}+{theirs['name']}"
    if theirs.get("ranges") is False:
        out["ranges"] = False
    if problems:
        shown = ", ".join(problems[:3]) + (f" and {len(problems) - 3} more" if len(problems) > 3 else "")
        raise InputError(f"{where}: their wirings disagree ({shown}); give the right one with --site SITE")
    return out


def _yaml(wiring: dict[str, Any]) -> str:
    return msgspec.json.encode(wiring).decode()  # JSON is YAML
