"""What the JSON formats share that list cables as pairs of `{"node": …, "interface": …}`."""

from __future__ import annotations

from typing import Any

from twin.topology.importers.sketch import End
from twin.topology.importers.source import Reader

Place = tuple[str | int, ...]


def pair(reader: Reader, link: object, place: Place) -> list[tuple[End, dict[str, Any]]] | None:
    """Both ends of a cable with all that is said of them; None for a port that is connected to nothing here."""
    ends = reader.items(link, place)
    if len(ends) != 2:
        raise reader.wrong(place, f"expected two ends, found {len(ends)}")
    if any(isinstance(end, str) for end in ends):  # "unconnected", "outbound": no device of this fabric
        return None
    out = []
    for i, item in enumerate(ends):
        end = reader.mapping(item, (*place, i))
        device = reader.text(end.get("node"), (*place, i, "node"))
        port = reader.text(end.get("interface"), (*place, i, "interface"))
        out.append((End(device, port), end))
    return out
