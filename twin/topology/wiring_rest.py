"""What is left of a wiring file when its malformed entries are left out, so that the others are looked at too."""

from __future__ import annotations

from typing import Any

from twin.topology.short.entries import Entry
from twin.yamlfile import Document, Place


class Rest(Document):
    """A document without the entries that are malformed; places mean the original. forgiven: their names."""

    def __init__(self, whole: Document, data: dict[str, Any], kept: dict[str, list[int]], forgiven: set[str]) -> None:
        self.path, self.whole, self.data, self.kept, self.forgiven = whole.path, whole, data, kept, forgiven

    def line(self, place: Place) -> int:
        return self.whole.line(self._original(place))

    def problem(self, place: Place, message: str) -> str:
        return self.whole.problem(self._original(place), message)

    def _original(self, place: Place) -> Place:
        if len(place) > 1 and place[0] in self.kept and isinstance(place[1], int):
            return (place[0], self.kept[str(place[0])][place[1]], *place[2:])
        return place


def without(document: Document, places: list[Place]) -> Rest:
    """The document without the entries that `places` are in."""
    if not isinstance(document.data, dict):
        return Rest(document, {}, {}, set())
    bad = {place[:2] for place in places if len(place) > 1}
    data, kept, forgiven = {}, {}, set()
    for key, value in document.data.items():
        if (key,) in places:
            continue
        if isinstance(value, list):
            kept[key] = [i for i in range(len(value)) if (key, i) not in bad]
            data[key] = [value[i] for i in kept[key]]
            dropped = [v for i, v in enumerate(value) if (key, i) in bad and isinstance(v, dict)]
            for v in dropped:
                forgiven |= _names(str(v.get("name")), document.data.get("ranges") is not False)
        else:
            data[key] = value
    return Rest(document, data, kept, forgiven)


def _names(name: str, ranges: bool) -> set[str]:
    try:
        return set(Entry(name, ranges).names)
    except ValueError:
        return {name}
