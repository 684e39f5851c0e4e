"""The shipped postmortems: what is found in the recordings is what the written answers say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from replay.analyze import analyze_trace
from replay.trace import open_trace
from twin.frames import NS

FOLDER = Path(__file__).parents[2] / "replay" / "postmortems"
NAMES = sorted(path.stem for path in FOLDER.glob("*.mcap"))
LATE_S = 35.0  # an answer gives the times of the fault; errors and flaps are over when they stayed away for a while


class Row(NamedTuple):
    kind: str
    cause: str
    start: float
    end: float
    gpus: int | None


def answer(name: str) -> Iterator[Row]:
    """The rows of the table in a written answer; times in seconds of the day."""
    for line in (FOLDER / f"{name}.md").read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and re.fullmatch(r"[\d:]+", cells[2]):
            gpus = int(cells[4]) if cells[4] else None
            yield Row(cells[0], cells[1], clock(cells[2]), clock(cells[3]), gpus)


def clock(text: str) -> float:
    hours, minutes, seconds = text.split(":")
    return int(hours) * 3600 + int(minutes) * 60 + int(seconds)


def second_of_day(time: int) -> float:
    at = datetime.fromtimestamp(time / NS, UTC)
    return at.hour * 3600 + at.minute * 60 + at.second + at.microsecond / 1e6


def test_three_are_shipped() -> None:
    assert len(NAMES) == 3


@pytest.mark.parametrize("name", NAMES)
def test_analyze_gives_the_written_answer_and_nothing_else(name: str) -> None:
    found = [i for i in analyze_trace(open_trace(FOLDER / f"{name}.mcap")).incidents if i.superseded_by is None]
    wanted = list(answer(name))
    assert sorted((i.kind, i.cause) for i in found) == sorted((w.kind, w.cause) for w in wanted)
    by_place = {(i.kind, i.cause): i for i in found}
    for w in wanted:
        incident = by_place[w.kind, w.cause]
        assert incident.resolved is not None
        assert abs(second_of_day(incident.started) - w.start) <= 12, w
        assert 0 <= second_of_day(incident.resolved) - w.end <= LATE_S or w.kind == "link_errors", w
        assert w.gpus in (None, incident.affected.gpus), w
