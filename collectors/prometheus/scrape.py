"""Exporters read directly: one page a sample, without a store in between."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import numpy as np

from collectors.base import Clock, Collector, CollectorError, Sample, frame_time
from collectors.portnames import PortNames
from collectors.prometheus.exposition import ACCEPT, OPENMETRICS, Page, PageError, split_key
from collectors.prometheus.http import Http, Reply
from collectors.prometheus.known import Known
from collectors.prometheus.places import Places
from collectors.prometheus.profiles import load_profiles
from collectors.prometheus.query import checked_names
from collectors.prometheus.table import Rows
from twin.errors import InputError
from twin.frames import NS

if TYPE_CHECKING:
    from twin.site import Site
    from twin.sitespecs import ExporterSpec

_SPARE = 10_000  # series that may be known beyond twice those of a page


class ExporterCollector:
    """One exporter. Readings have the time at which the page came, unless the page says another."""

    def __init__(
        self, name: str, http: Http, places: Places, *,
        interval: float = 1.0, deadline: float = 5.0, clock: Clock = time.time_ns,
    ) -> None:  # fmt: skip
        self.name, self.interval, self.deadline = name, interval, deadline
        self._http, self._places, self._clock = http, places, clock
        self._page = Page()
        self._known = Known(places, lambda device, profile: name, split_key)
        self._keys: list[bytes] | None = None  # of the page that `_wanted` and `_rows` belong to
        self._wanted: Rows = np.zeros(0, np.intp)
        self._rows: Rows = self._wanted

    async def collect(self) -> Sample:
        """A frame a profile and kind. Raises CollectorError where there is no page, or one that is cut short."""
        reply = await self._http.get(self._http.url, {"Accept": ACCEPT})
        return self.read(reply, frame_time(self._clock))

    async def close(self) -> None:
        await self._http.close()

    def read(self, reply: Reply, now: int) -> Sample:
        """The sample in an answer that came at `now`, ns."""
        if reply.status != 200:
            raise CollectorError(f"{self._http.url}: HTTP {reply.status}; is this the page of an exporter?")
        if reply.content_type == "text/html":
            raise CollectorError(f"{self._http.url}: a web page, not an exporter's; is its path /metrics?")
        try:
            values, stamps = self._page.read(reply.body, openmetrics=reply.content_type == OPENMETRICS)
            if self._page.keys is not self._keys:
                self._learn(self._page.keys)
        except PageError as problem:
            raise CollectorError(f"{self._http.url}: not a page of an exporter: {problem}") from problem
        rows, values, stamps = self._rows, values[self._wanted], stamps[self._wanted]
        said = np.isfinite(stamps) & (stamps > 0) & (stamps < 2.0**33)
        times = np.full(len(rows), now, np.int64)
        if said.any():
            times[said] = np.rint(stamps[said] * 1e6).astype(np.int64) * (NS // 1_000_000)
            new = self._known.table.fresh(rows, times)
            rows, values, times = rows[new], values[new], times[new]
        warnings = [f"{self._http.host}: {w}" for w in self._known.warnings()]
        if not len(self._rows):
            warnings.append(f"{self._http.url}: it has no series of these profiles")
        return Sample(self._known.table.frames(rows, values, times), warnings)

    def _learn(self, keys: list[bytes]) -> None:
        """Which keys of a page are ours, and their rows."""
        if len(self._known.table) > 2 * len(keys) + _SPARE:
            self._known.forget()
        names = [key.partition(b"{")[0].strip().decode() or split_key(key)[0] for key in keys]
        self._wanted = np.array([i for i, name in enumerate(names) if self._places.wanted(name)], np.intp)
        self._rows = self._known.rows([keys[i] for i in self._wanted.tolist()])
        self._keys = keys


def build(spec: ExporterSpec, site: Site) -> list[Collector]:
    """A collector a target. Raises InputError for what cannot be used, MissingLibrary without aiohttp."""
    where = "collectors: exporter"
    ports = PortNames(site.topology, spec.ports)
    problems = [
        f"{where}: targets: {device!r} is neither a node nor a switch of the wiring of {site.topology.name}"
        for device in spec.targets
        if not ports.has(device)
    ]
    if problems:
        raise InputError(problems)
    profiles = load_profiles(spec.profile, site.directory)
    names = checked_names(spec, site.topology, where)
    out: list[Collector] = []
    for device, url in spec.targets.items():
        page = url if urlsplit(url).path not in ("", "/") else f"{url.rstrip('/')}/metrics"
        http = Http(page, spec, site.directory, f"{where} {device}")
        places = Places(profiles, site.topology, ports, names, own=device)
        name = f"{device}:{'+'.join(profile.name for profile in profiles)}"
        out.append(ExporterCollector(name, http, places, interval=spec.every, deadline=spec.deadline))
    return out
