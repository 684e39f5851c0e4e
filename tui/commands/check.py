"""`fabrictwin check`: one verdict without a screen."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from tui.commands.live import about, open_live
from tui.commands.options import Seconds, json_option, print_json
from tui.main import CRITICAL, OK, WARNINGS
from twin.errors import FabrictwinError

if TYPE_CHECKING:
    from replay.live import Live
    from twin.snapshot import PowerView, Snapshot, SourceView

_POWER = ("watts", "capacity_watts", "headroom_watts", "headroom_after_loss_watts")
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
        click.echo(_text(verdict, about(live, site)))
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
    from twin.frames import NS
    from twin.topology.summary import summary

    snapshot = live.twin.snapshot()
    open_ = [i for i in snapshot.incidents if i.is_open and not i.is_muted]
    muted = [i for i in snapshot.incidents if i.is_open and i.is_muted]
    worst = open_[0].severity if open_ else "info"
    if worst == "info" and any(p.known_fraction == 0 for p in snapshot.planes):
        worst = "warning"  # a plane that nothing reports on is not healthy, it is unknown
    return {
        "time": snapshot.time / NS,
        "site": live.name,
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
        "power": _power(snapshot.power),
        "ports": _own_ports(snapshot) if not snapshot.planes else [],
        "incidents": [i.to_json() for i in open_],
        "muted": [i.to_json() for i in muted],
        "sources": _sources(live, snapshot),
    }


def _power(power: PowerView) -> list[dict[str, Any]]:
    """Site, racks and feeds; null where unknown."""
    columns = (power.watts, power.capacity, power.headroom, power.after_loss)
    values = zip(*(c.tolist() for c in columns), strict=True)
    rows = zip(power.names, power.kinds, values, power.lost.tolist(), strict=True)
    return [
        {
            "name": name,
            "kind": kind,
            **{key: None if v != v else round(v, 1) for key, v in zip(_POWER, watts, strict=True)},
            "lost": lost,
        }
        for name, kind, watts, lost in rows
        if kind != "node"
    ]


def _sources(live: Live, snapshot: Snapshot) -> list[dict[str, Any]]:
    """Every collector, then every further source that one of them handed on (hosts behind a broker)."""
    views = {s.name: s for s in snapshot.sources}
    collectors = [
        {
            "name": h.name,
            "ok": h.ok,
            "failures": h.failures,
            "error": h.last_error,
            "warnings": list(h.warnings),
            "duration_seconds": h.duration,
            "late": h.late > 0,
            "clock_offset_seconds": h.clock_offset,
            **_heard(views.pop(h.name, None)),
        }
        for h in live.health()
    ]
    handed_on = [
        {
            "name": view.name,
            "ok": view.state in ("ok", "late"),
            "failures": view.failures,
            "error": None,
            "warnings": [],
            "duration_seconds": view.duration_seconds,
            "late": view.state == "late",
            "clock_offset_seconds": view.clock_offset_seconds,
            **_heard(view),
        }
        for view in views.values()
    ]
    return collectors + handed_on


def _heard(view: SourceView | None) -> dict[str, Any]:
    """What the twin heard of a source. state: ok, late, stale, failed, or null before it has said anything."""
    if view is None:
        return {"state": None, "age_seconds": None, "clock_is_off": False}
    return {"state": view.state, "age_seconds": view.age_seconds, "clock_is_off": view.skewed}


def _own_ports(snapshot: Snapshot) -> list[dict[str, Any]]:
    """The ports of a host that is watched without a wiring."""
    up, tx, rx = (snapshot.port.get(m) for m in ("up", "tx_bytes", "rx_bytes"))
    known = snapshot.topology.port_names if up is not None else ()
    return [
        {
            "port": name,
            "label": snapshot.topology.labels.get(name),
            "up": None if up is None or up[i] != up[i] else bool(up[i]),
            "tx_bytes_per_second": None if tx is None else float(tx[i]),
            "rx_bytes_per_second": None if rx is None else float(rx[i]),
        }
        for i, name in enumerate(known)
    ]


def _share(value: float) -> str:
    return "unknown" if value != value else f"{value:.1%}"


def _clock_note(source: dict[str, Any]) -> str:
    offset = source["clock_offset_seconds"]
    way = "ahead of ours" if offset > 0 else "behind ours, or its readings are that late"
    return f"its clock is {abs(offset):.1f} s {way}"


def _text(v: dict[str, Any], told: tuple[str, ...] = ()) -> str:
    f = v["fabric"]
    shape = f"{f['gpus']} GPUs, {f['nodes']} nodes, {f['leaves']} leaves, {f['spines']} spines"
    lines = [f"{v['status'].upper()}  {v['site']}: {shape}", *(f"  {line}" for line in told)]
    for p in v["ports"]:
        state = "unknown" if p["up"] is None else "up" if p["up"] else "down"
        rates = " ".join(
            f"{way} {p[f'{way}_bytes_per_second']:,.0f} B/s"
            for way in ("tx", "rx")
            if (p[f"{way}_bytes_per_second"] or 0) == (p[f"{way}_bytes_per_second"] or 0)
            and p[f"{way}_bytes_per_second"] is not None
        )
        lines.append(f"  port {p['label'] or p['port']}: {state} {rates}".rstrip())
    lines.extend(
        f"  plane {p['plane']}: capacity {_share(p['capacity_fraction'])}, used {_share(p['used_fraction'])}, "
        f"{p['links_down']} links down, {p['links_slow']} slow, {p['known_fraction']:.0%} of its links known"
        for p in v["planes"]
    )
    for i in v["incidents"]:
        lines.append(f"  {i['severity'].upper():<8} {i['kind']} {i['cause']}: {i['summary']}")
        lines.append(f"           {i['advice']}")
    for i in v["muted"]:
        why = "in maintenance" if i["maintenance"] else "silenced"
        lines.append(f"  {why:<8} {i['kind']} {i['cause']}: {i['summary']}")
    for s in v["sources"]:
        lines.extend(f"  note     {s['name']}: {w}" for w in s["warnings"])
        if s["clock_is_off"]:
            lines.append(f"  note     {s['name']}: {_clock_note(s)}")
        if s["state"] == "late":
            lines.append(f"  note     {s['name']}: late, its newest reading is {s['age_seconds']:.0f} s old")
        if s["error"] and not s["ok"]:
            lines.append(f"  note     {s['name']}: {s['error']}")
    return "\n".join(lines)
