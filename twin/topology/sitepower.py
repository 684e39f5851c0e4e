"""What a site says of its power, put into a wiring that does not say it itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from twin.topology.model import Feeds, Topology


@dataclass(frozen=True, slots=True)
class SitePower:
    """rack_feed_watts: what each of a rack's two feeds carries continuously. site_watts: limit of the whole site."""

    rack_feed_watts: float | None = None
    redundancy: str = "none"
    site_watts: float | None = None


def with_power(topo: Topology, power: SitePower) -> Topology:
    """Racks without feeds get `RACK/feedA` and `RACK/feedB`, racks without redundancy the site's."""
    racks = topo.racks
    redundancy = tuple(power.redundancy if said == "none" else said for said in racks.redundancy)
    feeds = topo.feeds
    if power.rack_feed_watts is not None:
        bare = sorted(set(range(len(racks.name))) - set(topo.feeds.rack.tolist()))
        feeds = _more(feeds, racks.name, bare, power.rack_feed_watts)
    limit = topo.site_watts if power.site_watts is None else power.site_watts
    return replace(topo, racks=replace(racks, redundancy=redundancy), feeds=feeds, site_watts=limit)


def _more(feeds: Feeds, racks: Sequence[str], rows: list[int], watts: float) -> Feeds:
    import numpy as np  # a scenario names its power before there is a fabric, and then needs no numbers

    from twin.topology.model import Feeds

    return Feeds(
        name=(*feeds.name, *(f"{racks[r]}/feed{side}" for r in rows for side in "AB")),
        rack=np.r_[feeds.rack, np.repeat(np.array(rows, dtype=np.int32), 2)].astype(np.int32),
        watts=np.r_[feeds.watts, np.full(2 * len(rows), watts)],
    )
