"""An entry of a wiring file whose name has ranges: the names it stands for, and what else in it goes along."""

from __future__ import annotations

from twin.topology.short.pattern import Pattern, Walk, holds_range, parse, texts

NAME = "{name}"  # in a text of an entry: the name that it stands for at that step


class Entry:
    """ranges: whether brackets are ranges. Methods raise ValueError saying what is wrong with a range."""

    def __init__(self, name: str, ranges: bool = True) -> None:
        self.name, self.ranges = name, ranges
        self.names = [name]
        self._walk: Walk | None = None
        self.is_several = ranges and holds_range(name)
        if self.is_several:
            self.names = texts(self._lead.lead, self._lead.picks(self._lead.lead), self._lead.count)

    @property
    def _lead(self) -> Walk:
        if self._walk is None:
            self._walk = Walk(parse(self.name) if self.is_several else Pattern(self.name, (self.name,), ()))
        return self._walk

    def along(self, text: str | None) -> list[str | None]:
        """For each name the text that goes with it."""
        if text is None or not self.ranges or not holds_range(text):
            return [text] * len(self.names)
        pattern = parse(text)
        return list(texts(pattern, self._lead.picks(pattern), len(self.names)))

    def lists(self, several: list[str]) -> list[list[tuple[int, str]]]:
        """For each name what the texts of a list stand for there, each with its place in that list."""
        out: list[list[tuple[int, str]]] = [[] for _ in self.names]
        for place, text in enumerate(several):
            if self.ranges and holds_range(text):
                found = self._lead.lists(parse(text))
            else:
                found = [[text]] * len(self.names)
            for mine, name, some in zip(out, self.names, found, strict=True):
                mine.extend((place, one.replace(NAME, name) if NAME in text else one) for one in some)
        return out
