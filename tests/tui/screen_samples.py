"""Made-up snapshots and sessions for tests of the screen."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import lru_cache

import numpy as np

from tui.session import Mode, Publish, Told
from twin.incident import Affected, Evidence, Incident
from twin.snapshot import DOWN, UNKNOWN, UP, History, PlaneView, Snapshot, SourceView
from twin.topology.builder import Builder
from twin.topology.model import HOST_LEAF, Topology
from twin.topology.presets import preset

NS = 1_000_000_000
T0 = 1_764_590_400 * NS  # 2025-12-01 12:00:00 UTC


@lru_cache
def superpod() -> Topology:
    return preset("b300-superpod-ethernet")


PLANE_DOWN = Incident(
    kind="plane_down", cause="plane:B", severity="critical", started=T0 - 134 * NS, detected=T0 - 132 * NS,
    affected=Affected(512, 64, tuple(f"n{i:03d}" for i in range(64))), effect={"bandwidth_fraction": 0.5},
    evidence=(
        Evidence("plane:B", "capacity_fraction", 0.0, 1.0),
        Evidence("B-leaf-00/p64--B-spine-00/p0", "up", 0.0, 1.0),
        Evidence("n012/nic3/p1--B-leaf-03/p12", "speed_bits_per_second", None, 400e9),
    ),
    summary="Plane B has no capacity left: all of its 1,024 links are down. Every GPU keeps half of its bandwidth "
    "over plane A.",
    advice="Look at what the switches of plane B share: power feeds, a configuration push, the fabric manager. "
    "Jobs go on at half bandwidth; do not drain hosts.",
)  # fmt: skip
LINK_SLOW = Incident(
    kind="link_slow", cause="n012/nic3/p0--A-leaf-03/p12", severity="warning", started=T0 - 3800 * NS,
    detected=T0 - 3799 * NS, affected=Affected(1, 1, ("n012/gpu3",)), effect={"bandwidth_fraction": 0.75},
    evidence=(Evidence("n012/nic3/p0", "speed_bits_per_second", 200e9, 400e9),), count=3,
    summary="Link runs at 200G, designed for 400G.", advice="Reseat or replace the cable.",
)  # fmt: skip
STALE = Incident(
    kind="telemetry_stale", cause="n040", severity="warning", started=T0 - 40 * NS, detected=T0 - 37 * NS,
    affected=Affected(8, 1, ("n040",)), summary="No data from n040 for 40 s.", advice="Is its agent running?",
)  # fmt: skip
FLAP = Incident(
    kind="link_flapping", cause="n001/nic1/p0--A-leaf-01/p1", severity="warning", started=T0 - 250 * NS,
    detected=T0 - 248 * NS, resolved=T0 - 170 * NS, state="resolved", affected=Affected(1, 1, ("n001/gpu1",)),
    summary="Went down and came back 5 times.", advice="Look at the transceiver.", count=5,
)  # fmt: skip
SLOW_RECEIVER = Incident(
    kind="congestion", class_="slow_receiver", cause="n012/nic3/p0", severity="warning", started=T0 - 90 * NS,
    detected=T0 - 87 * NS, affected=Affected(14, 14, tuple(f"n{i:03d}/gpu3" for i in range(5, 19))),
    victims=tuple(f"n{i:03d}/gpu3" for i in range(5, 19) if i != 12),
    effect={"bandwidth_fraction": 0.73, "waiting_fraction": 0.54, "lost_bits_per_second": 214.7e9},
    evidence=(
        Evidence("A-leaf-03/p12", "waiting_fraction", 0.54, 0.0),
        Evidence("A-spine-03/p59", "waiting_fraction", 0.46, 0.0),
    ),
    summary="n012/nic3/p0 takes only 170.8G of 400G, A-leaf-03/p12 waits 54% of the time.",
    advice="The host n012 cannot drain, the network is not at fault: look at PCIe width, memory bandwidth and CPU.",
)  # fmt: skip
OVERSUBSCRIBED = Incident(
    kind="congestion", class_="oversubscription", cause="A-leaf-05", severity="warning", started=T0 - 30 * NS,
    detected=T0 - 27 * NS, victims=("A-leaf-05/p64", "A-leaf-05/p65"),
    summary="All 64 uplinks of A-leaf-05 are full.", advice="Spread the job over more leaves.",
)  # fmt: skip


def make_snapshot(
    topology: Topology | None = None, *, version: int = 1, time: int = T0, down: str = "", unknown: bool = False,
    slow: tuple[int, ...] = (), incidents: tuple[Incident, ...] = (), sources: int = 64, stale: int = 0,
    failed: int = 0, load: float = 0.42, minutes: int = 5, seed: int = 1,
) -> Snapshot:  # fmt: skip
    """A snapshot of `topology`. down: a plane. slow: links at half speed. unknown: nothing was heard."""
    top = superpod() if topology is None else topology
    links, planes = top.links, len(top.planes)
    random = np.random.default_rng(seed)
    state = np.full(len(links.a), UNKNOWN if unknown else UP, np.int8)
    dead = np.isin(links.plane, [top.planes.index(down)] if down else [])
    state[dead] = DOWN
    speed = np.where(dead, 0.0, links.speed) if not unknown else np.full(len(links.a), np.nan)
    use = np.clip(load + 0.08 * random.standard_normal(len(links.a)), 0, 1)
    use = np.where(dead, np.nan, use) if not unknown else np.full(len(links.a), np.nan)
    for link in slow:
        speed[link] /= 2
    gpus = np.full(len(top.gpus.node), np.nan if unknown else 1.0)
    if down:
        gpus -= 1 / planes
    if slow and not unknown and len(gpus) > 3:
        gpus[3] -= 0.25
    host = (links.tier == HOST_LEAF) & top.compute_links
    views = []
    for p, name in enumerate(top.planes):
        mine = links.plane == p
        designed = float(links.speed[mine & host].sum())
        left = float(np.nan_to_num(speed[mine & host]).sum() / designed) if designed else float("nan")
        used = 0.0 if name == down else load
        views.append(
            PlaneView(
                name, float("nan") if unknown else left, float("nan") if unknown else used, 0.0 if unknown else 1.0,
                int(mine.sum()), int((state[mine] == DOWN).sum()), int(sum(mine[s] for s in slow)),
                float("nan") if unknown else used * designed, designed,
            )
        )  # fmt: skip
    n = minutes * 60
    t = np.arange(n) - n + 1
    used_rows = np.tile((load + 0.2 * np.sin(t / 17) + 0.03 * random.standard_normal(n))[:, None], (1, planes))
    capacity = np.ones((n, planes))
    for p, name in enumerate(top.planes):
        if name == down:
            used_rows[t > -134, p], capacity[t > -134, p] = 0.0, 0.0
    if n > 100:
        used_rows[60:75] = np.nan
    history = History(time + t * NS, np.clip(used_rows, 0, 1), capacity, np.zeros(n, np.int32))
    listed = tuple(
        SourceView(f"n{i:03d}", "failed" if i < failed else "stale" if i < failed + stale else "ok",
                   40.0 + i if i < failed + stale else 0.4 + i % 3, 1.0, 3 if i < failed else 0, 25, 300)
        for i in range(sources)
    )  # fmt: skip
    ports, none = len(top.ports.link), np.full(len(top.ports.link), np.nan)
    return Snapshot(
        topology=top, time=time, version=version, planes=tuple(views), gpu_bandwidth=gpus, link_state=state,
        link_speed=speed, link_load=use, port_age=none if unknown else np.ones(ports), port={}, gpu={},
        gpu_age=np.full(len(gpus), np.nan if unknown else 1.0), incidents=incidents, sources=listed, events=(),
        history=history,
    )  # fmt: skip


def healthy() -> Snapshot:
    return make_snapshot()


def broken() -> Snapshot:
    return make_snapshot(down="B", slow=(99,), incidents=(PLANE_DOWN, LINK_SLOW, STALE, FLAP), stale=1)


def congested() -> Snapshot:
    return make_snapshot(incidents=(SLOW_RECEIVER, OVERSUBSCRIBED, LINK_SLOW))


def empty() -> Snapshot:
    """Nothing was ever heard."""
    return make_snapshot(unknown=True, sources=0, minutes=0)


ABOUT = (
    "No GPU (NVML: library not found) and no InfiniBand here; watching 3 network interfaces: eno1, eno2, ens5f0np0",
    "For a fabric, name a site file: `fabrictwin watch site.yaml`; `fabrictwin doctor` says what is missing here.",
)
NVML_REASON = (
    "NVML: driver and library are of different versions: reboot, or reload the driver (nvmlInit, 8 GPUs, 6 processes)"
)
FAILED = Incident(
    kind="collector_failed", cause="me:nvml", severity="warning", started=T0 - 75 * NS, detected=T0 - 72 * NS,
    summary="source me:nvml fails: what it reports is unknown until it works again",
    advice="See why in the notes of `fabrictwin check`, or in the log of me:nvml; it is tried again by itself.",
)  # fmt: skip


def own_host(*, failing: bool = False) -> Snapshot:
    """A host without a site: three interfaces, one down, one with errors. failing: NVML does not answer."""
    builder = Builder("me", planes=())
    builder.node("me", gpus=0, gpu_model="unknown", nics=[0, 1, 2], first_port=0, ports_per_nic=1)
    names = [f"me/nic{n}/p0" for n in range(3)]
    builder.labels = dict(zip(names, ("eno1", "eno2", "ens5f0np0"), strict=True))
    nan = float("nan")
    ports = {
        "up": [1.0, 0.0, 1.0], "speed_bits_per_second": [25e9, nan, 100e9], "rx_bytes": [1.31e6, 0.0, 4.7e9],
        "tx_bytes": [48_000.0, 0.0, 10.9e9], "rx_errors": [0.0, nan, 0.4], "tx_discards": [0.0, 0.0, 1250.0],
    }  # fmt: skip
    sources = [SourceView("me", "ok", 0.6, 1.0, 0, 3, 300)]
    if failing:
        sources.append(SourceView("me:nvml", "failed", nan, nan, 7, 0, 0))
        sources.append(SourceView("me:infiniband", "late", 14.0, 1.0, 0, 4, 90, 8.0, 8.2, 12.3, True))
    empty = make_snapshot(builder.build(), minutes=0, sources=0, incidents=(FAILED,) if failing else ())
    return replace(empty, port={m: np.array(v) for m, v in ports.items()}, sources=tuple(sources))


class StillSession(Told):
    """Publishes the given snapshots and then waits."""

    speed: float | None = None
    state = ""

    def __init__(
        self, *snapshots: Snapshot, mode: Mode = "live", title: str = "prod-su1", about: tuple[str, ...] = (),
        reasons: dict[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.mode: Mode = mode
        self.about, self._why = about, reasons or {}
        self.title = title
        self.snapshots = snapshots
        self.send: Publish | None = None

    def reasons(self) -> dict[str, str]:
        return self._why

    async def run(self, publish: Publish) -> None:
        self.send = publish
        for snapshot in self.snapshots:
            publish(snapshot)
        await asyncio.Event().wait()


class StillPlayer:
    """A recording of one minute in which nothing changes but the time; incidents as given."""

    def __init__(self, snapshot: Snapshot, seconds: int = 600) -> None:
        self._snapshot = snapshot
        self.start = snapshot.time - seconds * NS
        self.end = snapshot.time
        self.time = self.start
        self.topology = snapshot.topology
        self.incidents = snapshot.incidents
        self.notes: tuple[str, ...] = ()

    def step_to(self, time: int) -> Snapshot:
        self.time = time
        shown = tuple(i for i in self._snapshot.incidents if i.detected <= time)
        return replace(self._snapshot, time=time, version=(time - self.start) // NS, incidents=shown)
