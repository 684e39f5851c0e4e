"""`fabrictwin check`: one verdict without a screen."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from replay.live import Live
from tui.commands.live import open_live
from tui.commands.options import Seconds, json_option, print_json
from tui.main import CRITICAL, OK, WARNINGS
from twin.errors import FabrictwinError
from twin.frames import NS
from twin.topology.summary import summary

_STATUS = {"critical": ("critical", CRITICAL), "warning": ("warnings", WARNINGS)}


@click.command(
    epilog="""\b
Examples:
  fabrictwin check                               this host
  fabrictwin check site.yaml --for 15s --json
  fabrictwin check site.yaml || page-somebody    exit 0 healthy, 1 warnings, 2 critical, 3 cannot run"""
)
@click.argument("site", required=False)
@click.option("--for", "duration", type=Seconds(), default="10s", show_default=True, help="How long to look.")
@json_option
def command(site: str | None, duration: float, as_json: bool) -> int:
    """Looks at SITE (or this host) for a while and gives one verdict."""
    live = open_live(site)
    asyncio.run(_look(live, duration))
    verdict = _verdict(live)
    if as_json:
        print_json(verdict)
    else:
        click.echo(_text(verdict))
    return next((code for status, code in _STATUS.values() if status == verdict["status"]), OK)


async def _look(live: Live, duration: float) -> None:
    """Collects for `duration` seconds, longer only until every source had its first answer or failed."""
    async with live:
        loop = asyncio.get_running_loop()
        end = loop.time() + duration
        patience = end + 30.0
        async for frame in live.frames():
            live.twin.ingest(frame)
            if loop.time() >= end and (_all_answered(live) or loop.time() >= patience):
                break
    live.twin.finish()
    health = live.health()
    if health and not any(h.last_success for h in health):
        raise FabrictwinError("\n".join(f"{h.name}: {h.last_error or 'no answer yet'}" for h in health))


def _all_answered(live: Live) -> bool:
    return all(h.last_success or h.failures for h in live.health())


def _verdict(live: Live) -> dict[str, Any]:
    snapshot = live.twin.snapshot()
    open_ = [i for i in snapshot.incidents if i.is_open]
    worst = open_[0].severity if open_ else "info"
    return {
        "time": snapshot.time / NS,
        "status": _STATUS.get(worst, ("healthy", OK))[0],
        "fabric": summary(snapshot.topology),
        "planes": [
            {
                "plane": p.plane,
                "capacity_fraction": p.capacity_fraction,
                "used_fraction": p.used_fraction,
                "known_fraction": p.known_fraction,
                "links_down": p.links_down,
                "links_slow": p.links_slow,
            }
            for p in snapshot.planes
        ],
        "power": [],
        "incidents": [i.to_json() for i in open_],
        "sources": [
            {"name": h.name, "ok": h.ok, "failures": h.failures, "error": h.last_error, "warnings": list(h.warnings)}
            for h in live.health()
        ],
    }


def _text(v: dict[str, Any]) -> str:
    f = v["fabric"]
    shape = f"{f['gpus']} GPUs, {f['nodes']} nodes, {f['leaves']} leaves, {f['spines']} spines"
    lines = [f"{v['status'].upper()}  {f['name']}: {shape}"]
    for p in v["planes"]:
        used = "?" if p["used_fraction"] != p["used_fraction"] else f"{p['used_fraction']:.0%}"
        lines.append(
            f"  plane {p['plane']}: capacity {p['capacity_fraction']:.1%}, used {used}, "
            f"{p['links_down']} links down, {p['links_slow']} slow, {p['known_fraction']:.0%} of its links known"
        )
    for i in v["incidents"]:
        lines.append(f"  {i['severity'].upper():<8} {i['kind']} {i['cause']}: {i['summary']}")
        lines.append(f"           {i['advice']}")
    for s in v["sources"]:
        lines.extend(f"  note     {s['name']}: {w}" for w in s["warnings"])
        if s["error"] and not s["ok"]:
            lines.append(f"  note     {s['name']}: {s['error']}")
    return "\n".join(lines)
