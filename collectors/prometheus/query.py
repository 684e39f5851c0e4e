"""A Prometheus-compatible store, asked for the newest samples of all series that the profiles know.

An instant query for a plain series answers with samples that may be five minutes old and gives them the time of
the question, so that a dead exporter looks alive. Therefore a range is asked for, which comes with the samples' own
times: what is new since the last answer becomes frames of that time, and a silent exporter gives none.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from collectors.base import Clock, Collector, Sample, Worker, frame_time
from collectors.portnames import PortNames
from collectors.prometheus.api import Api, labels_of
from collectors.prometheus.http import Http, Reply
from collectors.prometheus.known import Known
from collectors.prometheus.places import Places
from collectors.prometheus.profiles import Profile, load_profiles
from twin.errors import InputError
from twin.frames import NS, Frame
from twin.topology.model import Topology

if TYPE_CHECKING:
    from twin.site import Site
    from twin.sitespecs import ExporterSpec, PrometheusSpec

FIRST_WINDOW_S = 60.0  # of the first question: scrapes are seldom further apart
LATENESS_S = 10.0  # a sample has the time at which its scrape began, and is there when that has ended
LONGEST_WINDOW_S = 300.0
_GUESS_S = 60.0  # interval of an exporter of which one sample is known
_GAPS = 5  # the last gaps between samples, whose median is the interval
_SPARE = 10_000  # series that may be known beyond twice those that came within …
_REMEMBERED = 600 * NS


class PrometheusCollector:
    """One store. The source of each frame is the device and the profile, `n012:dcgm-exporter`, since each exporter
    has its own clock and may die alone; how often each is scraped is learnt from the samples and told by a frame of
    kind `source`."""

    def __init__(
        self, name: str, api: Api, http: Http, places: Places, profiles: Sequence[Profile], *,
        selector: str = "", interval: float = 5.0, deadline: float = 10.0, clock: Clock = time.time_ns,
    ) -> None:  # fmt: skip
        self.name, self.interval, self.deadline = name, interval, deadline
        self._api, self._http, self._clock = api, http, clock
        self._query = selector_of(profiles, selector)
        self._known = Known(places, lambda device, profile: f"{device}:{profile}", labels_of)
        self._rhythm = Rhythm(interval)
        self._answered: float | None = None  # monotonic seconds of the last answer
        self._worker = Worker(name)

    async def collect(self) -> Sample:
        """A frame a source and kind for what is new. Raises CollectorError where the store gives no answer."""
        asked = time.monotonic()
        window = FIRST_WINDOW_S if self._answered is None else asked - self._answered + LATENESS_S
        window = min(max(window, self.interval + LATENESS_S), LONGEST_WINDOW_S)
        reply = await self._api.query(f"{self._query}[{round(window * 1000)}ms]")
        sample = await self._worker.run(lambda: self._read(reply))
        self._answered = asked
        return sample

    async def close(self) -> None:
        await self._http.close()

    def _read(self, reply: Reply) -> Sample:
        found = self._api.matrix(reply)
        rows = self._known.rows(found.keys)
        times, values = found.last()
        table = self._known.table
        new = table.fresh(rows, times)
        frames = table.frames(rows[new], values[new], times[new])
        if len(table) > 2 * table.alive(_REMEMBERED) + _SPARE:
            self._known.forget()
        warnings = [*found.warnings[:1], *self._known.warnings()]
        if not found.keys and self._answered is None:
            warnings.append("it has no series of these profiles; check profile and selector")
        warnings = [f"{self._http.host}: {w}" for w in warnings]
        intervals = self._rhythm.note(frames)
        if intervals:
            columns = {"interval_seconds": np.array(list(intervals.values()))}
            frames.append(Frame(frame_time(self._clock), self.name, "source", tuple(intervals), columns))
        return Sample(frames, warnings)


def selector_of(profiles: Sequence[Profile], selector: str) -> str:
    """All series that profiles know, narrowed by the label matchers of a site."""
    names = sorted({series for profile in profiles for series in profile.series})
    matchers = ['__name__=~"' + "|".join(names) + '"', *([selector] if selector else [])]
    return "{" + ",".join(matchers) + "}"


class Rhythm:
    """How often each source has something new, from the times of its frames."""

    def __init__(self, shortest: float) -> None:
        self._shortest = shortest  # seconds: we do not look more often
        self._last: dict[str, int] = {}
        self._gaps: dict[str, list[int]] = {}
        self._told: dict[str, float] = {}

    def note(self, frames: Iterable[Frame]) -> dict[str, float]:
        """Source -> interval in seconds, for those whose interval is new or another than was told before."""
        out = {}
        for source, newest in {f.source: f.time for f in frames}.items():
            before = self._last.get(source)
            self._last[source] = newest
            if before is not None and newest > before:
                self._gaps[source] = [*self._gaps.get(source, ())[1 - _GAPS :], newest - before]
            gaps = sorted(self._gaps.get(source, ()))
            interval = max(gaps[len(gaps) // 2] / NS if gaps else _GUESS_S, self._shortest)
            if abs(interval - self._told.get(source, 0.0)) > 0.1 * interval:
                out[source] = self._told[source] = round(interval, 3)
        return out


def build(spec: PrometheusSpec, site: Site) -> list[Collector]:
    """The collector of one store. Raises InputError for what cannot be used, MissingLibrary without aiohttp."""
    where = f"collectors: prometheus {spec.url}"
    http = Http(spec.url, spec, site.directory, where)
    profiles = load_profiles(spec.profile, site.directory)
    names = checked_names(spec, site.topology, where)
    places = Places(profiles, site.topology, PortNames(site.topology, spec.ports), names)
    name = f"prometheus:{http.host}{'{' + spec.selector + '}' if spec.selector else ''}"
    return [
        PrometheusCollector(
            name, Api(http), http, places, profiles,
            selector=spec.selector, interval=spec.every, deadline=spec.deadline,
        )
    ]  # fmt: skip


def checked_names(spec: PrometheusSpec | ExporterSpec, topology: Topology, where: str) -> dict[str, str]:
    """What the site calls entities. Raises InputError where that is not in the wiring."""
    kinds = ("node", "gpu", "psu", "feed")
    problems = [
        f"{where}: names: {theirs!r}: {ours!r} is neither a node or switch nor a GPU, supply or feed of the wiring"
        for theirs, ours in spec.names.items()
        if ours not in topology.rows("switch") and not any(ours in topology.rows(kind) for kind in kinds)
    ]
    if problems:
        raise InputError(problems)
    return spec.names
