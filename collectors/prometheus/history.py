"""What a Prometheus-compatible store remembers, as the frames that would have come in then.

Samples are asked for as they were scraped (a range selector), not at the steps of a range query: that would repeat an
old sample for five minutes where there is none, and what was blind would look healthy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from collectors.base import Worker
from collectors.portnames import PortNames
from collectors.prometheus.api import Api, labels_of
from collectors.prometheus.http import Http, Reply
from collectors.prometheus.known import Known
from collectors.prometheus.places import Places
from collectors.prometheus.profiles import load_profiles
from collectors.prometheus.query import Rhythm, checked_names, selector_of
from twin.frames import NS, Frame
from twin.site import Site
from twin.sitespecs import PrometheusSpec
from twin.sources import SUPERVISOR

MOMENT = NS // 4  # samples this close together are of one moment: a target's scrape has one time for all its series
_MS = NS // 1000
_WORD = 10 * NS
I64 = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Frames by time, and what could not be placed."""

    frames: Sequence[Frame]
    warnings: Sequence[str]


class History:
    """One store. Sources are named as the live collector names them. step: at most one reading of a series in so many
    nanoseconds, the last one; 0 for all of them.

    Raises InputError for a spec that cannot be used, MissingLibrary without aiohttp.
    """

    def __init__(self, spec: PrometheusSpec, site: Site, step: int = 0) -> None:
        self._http = Http(spec.url, spec, site.directory, f"prometheus {spec.url}")
        self._api = Api(self._http)
        profiles = load_profiles(spec.profile, site.directory)
        names = checked_names(spec, site.topology, f"prometheus {spec.url}")
        places = Places(profiles, site.topology, PortNames(site.topology, spec.ports), names)
        self._known = Known(places, lambda device, profile: f"{device}:{profile}", labels_of)
        self._rhythm = Rhythm(max(step, _MS) / NS)
        self._query = selector_of(profiles, spec.selector)
        self._moment = step or MOMENT
        self.name = f"prometheus:{self._http.host}"
        self._worker = Worker(self.name)

    async def between(self, start: int, end: int) -> Stretch:
        """What was scraped after `start` up to `end` (ns, both rounded to ms), with a word every ten seconds that the
        store has answered, so that time passes where it knows nothing. Raises CollectorError where it does not."""
        span = (end - start) // _MS
        reply = await self._api.query(f"{self._query}[{span}ms]", end / NS)
        return await self._worker.run(lambda: self._read(reply, start, end))

    def learn(self, frames: Sequence[Frame]) -> None:
        """How often sources report, from frames that were had before."""
        self._rhythm.note(frames)

    async def close(self) -> None:
        await self._http.close()

    def _read(self, reply: Reply, start: int, end: int) -> Stretch:
        found = self._api.matrix(reply)
        rows = np.repeat(self._known.rows(found.keys), found.counts)
        inside = (found.times > start) & (found.times <= end)  # stores differ in whether the first moment belongs
        rows, times, values = rows[inside], found.times[inside], found.values[inside]
        order = np.argsort(times, kind="stable")
        rows, times, values = rows[order], times[order], values[order]
        frames: list[Frame] = []
        for first, last in _moments(times, self._moment):
            here = self._known.table.frames(rows[first:last], values[first:last], times[first:last])
            frames.extend(here)
            intervals = self._rhythm.note(here)
            if intervals:
                column = np.array(list(intervals.values()))
                frames.append(
                    Frame(int(times[last - 1]), self.name, "source", tuple(intervals), {"interval_seconds": column})
                )
        frames.extend(self._words(start, end))
        frames.sort(key=lambda f: f.time)
        return Stretch(frames, [*found.warnings[:1], *self._known.warnings()])

    def _words(self, start: int, end: int) -> list[Frame]:
        """As the supervisor of a live collector says how it does."""
        times = [*range((start // _WORD + 1) * _WORD, end, _WORD), end]
        return [Frame(time, SUPERVISOR, "source", (self.name,), {"up": np.ones(1)}) for time in times]


def _moments(times: I64, width: int) -> list[tuple[int, int]]:
    """First and past-the-last position of each stretch of `width` ns that holds any of the sorted times."""
    if not len(times):
        return []
    edges = np.flatnonzero(np.diff(times // width)) + 1
    return list(zip([0, *edges.tolist()], [*edges.tolist(), len(times)], strict=True))
