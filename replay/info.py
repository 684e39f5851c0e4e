"""What `trace info` says of a trace, for programs and for people."""

from __future__ import annotations

from typing import Any

from replay.trace import Trace
from twin.errors import InputError
from twin.frames import NS
from twin.topology.summary import summary


def info(trace: Trace) -> dict[str, Any]:
    """A trace in figures; reads all of it. Times in seconds since the epoch, null where there is no frame."""
    tally = trace.tally
    length = None if tally.start is None or tally.end is None else (tally.end - tally.start) / NS
    try:
        wiring: dict[str, Any] | None = summary(trace.topology)
    except InputError:
        wiring = None
    return {
        "path": str(trace.path),
        "format": trace.format.removeprefix("."),
        "bytes": trace.size,
        "recorded_by": trace.metadata.get("program"),
        "start": None if tally.start is None else tally.start / NS,
        "end": None if tally.end is None else tally.end / NS,
        "duration_seconds": length,
        "frames": tally.frames,
        "sources": dict(sorted(tally.sources.items())),
        "kinds": dict(sorted(tally.kinds.items())),
        "notes": len(trace.notes),
        "incident_events": len(tally.said),
        "topology": wiring,
        "truncated": tally.truncated,
        "problems": trace.problems,
    }


def info_text(found: dict[str, Any]) -> str:
    """The same for a person."""
    from replay.analyze import show_span

    rows = [
        ("format", f"{found['format']}, {found['bytes']:,} bytes" + _by(found["recorded_by"])),
        ("time", "no frames" if found["start"] is None
         else show_span(round(found["start"] * NS), round(found["end"] * NS))),
        ("frames", f"{found['frames']:,} from {len(found['sources'])} sources"),
        ("kinds", ", ".join(f"{kind} {count:,}" for kind, count in found["kinds"].items()) or "none"),
        ("notes", f"{found['notes']}, and {found['incident_events']} records of incidents"),
        ("wiring", _wiring(found["topology"])),
        ("whole", "no: part of the recording is missing" if found["truncated"] else "yes"),
    ]  # fmt: skip
    lines = [found["path"], *(f"  {key:<8} {value}" for key, value in rows)]
    lines.extend(f"  problem  {problem}" for problem in found["problems"])
    return "\n".join(lines)


def _by(program: str | None) -> str:
    return f", recorded by {program}" if program else ""


def _wiring(topology: dict[str, Any] | None) -> str:
    if topology is None:
        return "not in it; commands that need it take --site"
    return f"{topology['name']}: {topology['gpus']} GPUs, {topology['nodes']} nodes, {topology['planes']} planes"
