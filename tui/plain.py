"""The twin as lines of text: planes and incidents as they happen, for pipes, logs and `--plain`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from tui.rows.interfaces import Interface, a_second, interfaces, state_of
from tui.text import rate_of
from twin.frames import NS
from twin.incident import Incident
from twin.snapshot import Event, PlaneView, Snapshot

if TYPE_CHECKING:
    from twin.frames import Frame
    from twin.twin import Twin

_EVERY = 10 * NS  # a line on the planes at least this often, event time


class Judge(Protocol):
    """What the lines are made from: a Twin."""

    @property
    def events(self) -> list[Event]: ...

    @property
    def time(self) -> int: ...

    def snapshot(self) -> Snapshot: ...


def clock(time: int) -> str:
    """Event time as an operator reads it, UTC."""
    return datetime.fromtimestamp(time // NS, UTC).strftime("%H:%M:%SZ")


def event_line(event: Event) -> str:
    """`03:12:05Z  CRITICAL opened      plane_down plane:B: plane B is down …`"""
    i = event.incident
    line = f"{clock(event.time)}  {i.severity.upper():<8} {event.what:<10} {i.kind} {i.cause}"
    if event.what in ("opened", "changed", "reopened"):
        return f"{line}: {i.summary}"
    if event.what == "resolved":
        return f"{line}: lasted {(event.time - i.started) / NS:.0f} s"
    return line


def advice_line(incident: Incident) -> str:
    return f"{'':11}{'':<8} advice     {incident.advice}"


def _share(value: float) -> str:
    return "  ?" if value != value else f"{value:4.0%}"


def plane_text(plane: PlaneView) -> str:
    down = f" {plane.links_down} links down" if plane.links_down else ""
    slow = f" {plane.links_slow} slow" if plane.links_slow else ""
    return f"{plane.plane} capacity {_share(plane.capacity_fraction)} used {_share(plane.used_fraction)}{down}{slow}"


def planes_line(snapshot: Snapshot) -> str:
    """One line on all planes."""
    known = snapshot.gpu_bandwidth == snapshot.gpu_bandwidth
    hit = int((snapshot.gpu_bandwidth[known] < 1 - 1e-9).sum())
    planes = " | ".join(plane_text(p) for p in snapshot.planes) or "no planes in this wiring"
    gpus = f"{hit} of {len(snapshot.gpu_bandwidth)} GPUs below full bandwidth"
    return f"{clock(snapshot.time)}  planes   {planes} | {gpus}"


def ports_line(snapshot: Snapshot) -> str:
    """One line on the ports of a host that is watched without a wiring."""
    if "up" not in snapshot.port:
        return f"{clock(snapshot.time)}  ports    nothing heard of any port yet"
    told = [_port_text(i) for i in interfaces(snapshot)]
    more = f" and {len(told) - 8} more" if len(told) > 8 else ""
    return f"{clock(snapshot.time)}  ports    {', '.join(told[:8])}{more}"


def _port_text(port: Interface) -> str:
    """`eth0 up 10 Gb/s rx 1.2 Mb/s tx 4 Kb/s`; what is unknown is left out, errors are told where there are some."""
    words = [port.name, state_of(port.up)[1]]
    words += [rate_of(port.speed)] if port.speed == port.speed else []
    words += [f"{way} {rate_of(rate)}" for way, rate in (("rx", port.rx), ("tx", port.tx)) if rate == rate]
    words += [
        f"{a_second(rate)} {what}" for what, rate in (("errors", port.errors), ("drops", port.drops)) if rate > 0
    ]
    return " ".join(words)


def follow(twin: Twin, frames: Iterable[Frame], write: Callable[[str], None]) -> None:
    """Takes all frames and writes a line for whatever the twin says of them."""
    lines = Lines(twin)
    for frame in frames:
        twin.ingest(frame)
        lines.tell(write)
    twin.finish()
    lines.tell(write)


class Lines:
    """Turns what a twin has said since the last call into lines."""

    def __init__(self, twin: Judge, reasons: Callable[[], Mapping[str, str]] = dict) -> None:
        """reasons: source -> why it fails."""
        self._twin, self._reasons = twin, reasons
        self._said = 0
        self._planes_at = 0

    def tell(self, write: Callable[[str], None]) -> None:
        for line in self.fresh():
            write(line)

    def fresh(self) -> Iterator[str]:
        """Lines for everything new; the planes when an incident came or went, and every ten seconds."""
        events = self._twin.events[self._said :]
        self._said += len(events)
        for event in events:
            yield event_line(event)
            if event.what == "opened":
                if reason := self._reasons().get(event.incident.cause):
                    yield f"{'':11}{'':<8} reason     {reason}"
                yield advice_line(event.incident)
        if self._twin.time and (events or not self._planes_at or self._twin.time - self._planes_at >= _EVERY):
            snapshot = self._twin.snapshot()
            if snapshot.version:
                self._planes_at = self._twin.time
                yield planes_line(snapshot) if snapshot.planes else ports_line(snapshot)
