"""The live pipeline: collectors into a recording, if one is wanted, and on to the twin."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from collectors.base import Collector
from collectors.supervisor import SourceHealth, Supervisor
from twin.detectors.rules import Rules
from twin.errors import InputError
from twin.frames import Frame
from twin.maintenance import Window
from twin.topology.model import Topology
from twin.twin import Twin

if TYPE_CHECKING:
    from replay.keeping import KeptRecorder
    from replay.limits import Keeping
    from replay.recorder import Recorder
    from twin.site import Site


class Live:
    """A site being watched. `frames()` hands every frame on after it was recorded; feed them to `twin`.

    Raises InputError where there is nothing to collect from.
    """

    def __init__(
        self,
        name: str,
        topology: Topology,
        collectors: Sequence[Collector],
        *,
        rules: Rules | None = None,
        source: dict[str, Any] | None = None,
        record: Path | None = None,
        maintenance: Sequence[Window] = (),
        keeping: Keeping | None = None,
    ) -> None:
        if not collectors:
            raise InputError(
                f"{name}: nothing to collect from; add collectors to the site file, such as `- infiniband: {{}}`"
            )
        self.name = name
        self.twin = Twin(topology, rules, maintenance)
        self._supervisor = Supervisor(collectors)
        self._recorder: Recorder | KeptRecorder | None = None
        self.recording_error: str | None = None
        self._events = 0
        if record is not None:
            self._recorder = _recorder(record, topology, source, keeping)

    @classmethod
    def of(cls, site: Site, record: Path | None = None, keeping: Keeping | None = None) -> Self:
        """The pipeline of a site file. Raises InputError or MissingTool where it cannot run."""
        from collectors.build import build

        return cls(
            site.name, site.topology, build(site), rules=site.rules, source=site.source, record=record,
            maintenance=site.maintenance, keeping=keeping,
        )  # fmt: skip

    async def __aenter__(self) -> Self:
        self._supervisor.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def frames(self) -> AsyncIterator[Frame]:
        """Every frame of every source, in order of arrival, recorded before it is handed on."""
        try:
            async for frame in self._supervisor.frames():
                self._record(frame)
                yield frame
        finally:
            await self.close()

    def _record(self, frame: Frame) -> None:
        recorder = self._recorder
        if recorder is not None:
            with self._guarded():
                self._record_events(recorder)
                recorder.write(frame)

    def _record_events(self, recorder: Recorder | KeptRecorder) -> None:
        fresh = self.twin.events[self._events :]
        self._events += len(fresh)
        for event in fresh:
            recorder.event(event)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """A recording that fails ends, with its reason kept; the monitor goes on without it."""
        from replay.recorder import RecordingError

        try:
            yield
        except RecordingError as problem:
            self.recording_error = str(problem)
            self._recorder = None

    def health(self) -> list[SourceHealth]:
        return self._supervisor.health()

    async def close(self) -> None:
        """Ends collecting and closes the recording."""
        await self._supervisor.close()
        self.finish_recording()

    def finish_recording(self) -> None:
        """Closes the recording; it is whole then. Needs no event loop, and may be called again."""
        recorder, self._recorder = self._recorder, None
        if recorder is not None:
            with self._guarded():
                self._record_events(recorder)
                recorder.close()


def _recorder(
    path: Path, topology: Topology, source: dict[str, Any] | None, keeping: Keeping | None
) -> Recorder | KeptRecorder:
    if keeping is None:
        from replay.recorder import Recorder

        return Recorder(path, topology, source)
    from replay.keeping import KeptRecorder

    return KeptRecorder(path, topology, source, keeping)
