"""A site watched in the background, as `fabrictwin watch` does it, while a test breaks and mends things."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from replay.live import Live
from twin.incident import Incident
from twin.site import load_site

PATIENCE_S = 40.0


class Watch:
    """`run` in a task; `until` waits for something to be so, and fails the test when it does not come."""

    def __init__(self, site: Path, record: Path | None = None) -> None:
        self.live = Live.of(load_site(site), record)

    async def run(self) -> None:
        async for frame in self.live.frames():
            self.live.twin.ingest(frame)

    @property
    def incidents(self) -> tuple[Incident, ...]:
        return self.live.twin.incidents

    def standing(self) -> list[Incident]:
        return [i for i in self.incidents if i.is_open]

    def open_(self) -> list[tuple[str, str]]:
        return [(i.kind, i.cause) for i in self.standing()]

    async def until(self, true: Callable[[], bool], what: str, seconds: float = PATIENCE_S) -> None:
        try:
            async with asyncio.timeout(seconds):
                while not true():
                    await asyncio.sleep(0.05)
        except TimeoutError:
            pytest.fail(f"{what} did not come: {[(i.kind, i.cause, i.state) for i in self.incidents]}")
