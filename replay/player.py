"""Player: a trace on a timeline, forward and back, for a screen or for a program.

The state at a time t is that of a twin that was fed, in the order of the recording, every frame up to the
first one that moves the clock past t. It is the same whether t was reached by playing or by a jump.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread

from replay.keyframes import Cursor, Keyframes
from replay.records import Note
from replay.trace import Trace
from twin.errors import FabrictwinError, InputError
from twin.frames import NS
from twin.incident import Incident
from twin.snapshot import Snapshot
from twin.topology.model import Topology
from twin.twin import Twin

_MAX_KEYFRAMES, _MIN_KEYFRAMES = 128, 16
_KEYFRAME_PORTS = 1_000_000  # a keyframe is about 200 bytes a port: 200 MB in all


class Player:
    """Plays one trace. start, end: its first and last event time, ns.

    twin: a fresh Twin of the trace's wiring, where other rules are wanted. Raises InputError where the trace
    has no frames or no wiring, or is text with a broken line.
    """

    def __init__(self, trace: Trace, *, twin: Twin | None = None, keyframes: int | None = None) -> None:
        self.trace = trace
        self.topology: Topology = trace.topology
        start, end = trace.start, trace.end
        if start is None or end is None:
            raise InputError([f"{trace.path}: holds no frames", *trace.problems])
        self.start, self.end, self.time = start, end, start
        self.failure: FabrictwinError | None = None  # why the pass over the trace stopped early
        self._fresh = trace.twin() if twin is None else twin
        self._cursor = Cursor(trace, self._fresh.fork())
        self._snapshot: Snapshot | None = None
        if keyframes is None:
            ports = max(1, len(self.topology.ports.link))
            keyframes = max(_MIN_KEYFRAMES, min(_MAX_KEYFRAMES, _KEYFRAME_PORTS // ports))
        self.keyframes = Keyframes(keyframes)
        self._incidents: tuple[Incident, ...] = ()
        self._scanned = 0.0
        self._stop = Event()
        self._thread: Thread | None = None

    # --- the timeline ---

    def step_to(self, time: int) -> Snapshot:
        """The state at `time`, forward or back; a time outside the trace is taken to its start or end."""
        self.time = min(max(time, self.start), self.end)
        cursor = self._nearest(self.time)
        moved = cursor is not self._cursor
        while (due := cursor.due) is not None and (due <= self.time or cursor.clock is None):
            cursor.step()
            moved = True
            self._remember(cursor, self.time)
        self._cursor = cursor
        if moved or self._snapshot is None:
            self._snapshot = self._show(cursor)
        return self._snapshot

    def _nearest(self, time: int) -> Cursor:
        """The cursor from which `time` is reached soonest."""
        here = self._cursor.clock
        reachable = here is None or here <= time
        keyframe = self.keyframes.best(time)
        if keyframe is not None and (not reachable or here is None or keyframe.clock > here):
            return Cursor.at(self.trace, keyframe)
        return self._cursor if reachable else Cursor(self.trace, self._fresh.fork())

    def _remember(self, cursor: Cursor, target: int | None) -> None:
        clock = cursor.clock or 0
        spread = self.keyframes.wants(clock)
        if spread or (target is not None and self.keyframes.wants_near(clock, target)):
            keyframe = cursor.keyframe()
            if keyframe is not None:
                self.keyframes.keep(keyframe, near=not spread)

    @staticmethod
    def _show(cursor: Cursor) -> Snapshot:
        if cursor.due is not None:
            return cursor.twin.snapshot()
        last = cursor.twin.fork()  # nothing follows: what came in last is judged, and playing back stays possible
        last.finish()
        return last.snapshot()

    # --- what is on it ---

    @property
    def incidents(self) -> tuple[Incident, ...]:
        """The incidents of the whole trace; while the pass is under way, those found so far."""
        return self._incidents

    @property
    def scanned(self) -> float:
        """How much of the trace the pass for incidents has seen, 0 to 1."""
        return self._scanned

    @property
    def notes(self) -> list[Note]:
        """Notes by time; those inside a recording are known after the pass."""
        return self.trace.notes if self.trace.scanned else self.trace.added_notes

    def add_note(self, text: str, author: str = "") -> Note:
        """Keeps a note for the present time beside the trace. Raises FabrictwinError where it cannot be written."""
        note = Note(self.time, text, author)
        self.trace.add_note(note)
        return note

    def incident_after(self, time: int) -> Incident | None:
        """The next incident on the timeline, by the time it was detected."""
        return min((i for i in self._incidents if i.detected > time), key=lambda i: i.detected, default=None)

    def incident_before(self, time: int) -> Incident | None:
        """The previous incident on the timeline."""
        return max((i for i in self._incidents if i.detected < time), key=lambda i: i.detected, default=None)

    # --- the pass over the whole trace ---

    def scan(self, progress: Callable[[float], None] | None = None) -> tuple[Incident, ...]:
        """Goes through the whole trace once and returns its incidents, leaving keyframes on the way.

        May run in another thread than `step_to`. progress: told how far it is, 0 to 1.
        """
        cursor = Cursor(self.trace, self._fresh.fork())
        length, shown = max(1, self.end - self.start), self.start
        while cursor.due is not None and not self._stop.is_set():
            cursor.step()
            self._remember(cursor, None)
            clock = cursor.clock or 0
            if clock - shown >= NS:
                shown = clock
                self._scanned = min(1.0, (clock - self.start) / length)
                self._incidents = cursor.twin.incidents
                if progress is not None:
                    progress(self._scanned)
        if cursor.due is None:
            cursor.twin.finish()
            self._incidents, self._scanned = cursor.twin.incidents, 1.0
        return self._incidents

    def start_scan(self) -> None:
        """Runs `scan` in a thread of its own; `scanned` tells how far it is, `failure` whether it broke off."""
        if self._thread is None:
            self._thread = Thread(target=self._scan_quietly, name="trace-scan", daemon=True)
            self._thread.start()

    def wait(self, timeout: float | None = None) -> bool:
        """Waits for the pass; whether it is over."""
        if self._thread is not None:
            self._thread.join(timeout)
        return self._thread is None or not self._thread.is_alive()

    def close(self) -> None:
        """Ends the pass."""
        self._stop.set()
        self.wait()

    def _scan_quietly(self) -> None:
        try:
            self.scan()
        except FabrictwinError as problem:
            self.failure = problem
