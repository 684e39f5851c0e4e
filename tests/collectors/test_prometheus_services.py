"""A real Prometheus and real node_exporters over trees of /sys that the tests write."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import yaml

from collectors.base import CollectorError, Sample
from collectors.prometheus import query, scrape
from collectors.prometheus.api import Api, labels_of
from collectors.prometheus.http import Http
from tests.collectors.prometheus_parts import WIRING, site, values
from tests.collectors.sysfs_tree import Tree, device, ib_port, interface, write
from tests.rigs.prometheus import NodeExporter, Prometheus
from tests.rigs.watch import Watch
from twin.sitespecs import ExporterSpec, PrometheusSpec

pytestmark = pytest.mark.service("prometheus", "prometheus-node-exporter")

PROFILES = ["node-exporter-infiniband", "node-exporter-network"]
RATE = 1e9  # bytes/s that the hosts send on every port
INFINIBAND = "node-exporter-infiniband"


def tree(root: Path, **port: str | Tree) -> Path:
    """Two InfiniBand ports, the second one down, and an interface that belongs to no fabric."""
    about = {"board_id": "MT_1", "fw_ver": "28.1", "hca_type": "MT4129"}
    down = ib_port(state="1: DOWN", phys_state="2: Polling", rate="10 Gb/sec (4X SDR)")
    ports = {"mlx5_0": {**device(ib_port(**port)), **about}, "mlx5_1": {**device(down), **about}}
    return write(root, {"class": {"infiniband": ports, "net": {"lo": interface(), "eth0": interface()}}})


EXACT = {
    "up": 1, "speed_bits_per_second": 400e9, "tx_bytes": 4 * (2**50 + 1), "rx_bytes": 8000, "tx_packets": 10,
    "rx_packets": 20, "tx_discards": 3, "rx_errors": 4, "symbol_errors": 5, "link_downed": 6, "tx_wait_ticks": 7,
}  # fmt: skip
BIG = {
    "port_xmit_data": str(2**50 + 1), "port_rcv_data": "2000", "port_xmit_packets": "10", "port_rcv_packets": "20",
    "port_xmit_discards": "3", "port_rcv_errors": "4", "symbol_error": "5", "link_downed": "6", "port_xmit_wait": "7",
}  # fmt: skip


@contextlib.contextmanager
def exporters(tmp_path: Path) -> Iterator[dict[str, NodeExporter]]:
    """One of n0 and one of n1."""
    with contextlib.ExitStack() as stack:
        yield {
            f"{host}.example.org:9100": stack.enter_context(
                NodeExporter(tmp_path / host, tree(tmp_path / "sys" / host, counters=BIG))
            )
            for host in ("n0", "n1")
        }


def check(sample: Sample) -> None:
    down = {m: v for m, v in EXACT.items() if m != "speed_bits_per_second"} | {"up": 0, "tx_bytes": 4000}
    expected = {"n0/nic0/p0": EXACT, "n0/nic1/p0": down, "n1/nic0/p0": EXACT, "n1/nic1/p0": down}
    assert values(sample) == expected


async def test_what_exporters_serve_directly_is_exactly_what_the_trees_hold(tmp_path: Path) -> None:
    with exporters(tmp_path) as running:
        targets = {name.partition(".")[0]: exporter.url for name, exporter in running.items()}
        collectors = scrape.build(ExporterSpec(targets=targets, profile=PROFILES), site())
        for turn in range(2):  # once to learn the page, once when it is known
            samples = [await c.collect() for c in collectors]
            check(Sample([frame for s in samples for frame in s.frames]))
            assert [c.name for c in collectors] == [f"n{i}:{'+'.join(PROFILES)}" for i in range(2)], turn
        for collector in collectors:
            await collector.close()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A store that has scraped both exporters; it takes Prometheus five seconds to begin."""
    directory = tmp_path_factory.mktemp("prometheus")
    with exporters(directory) as running, Prometheus(directory / "store", running) as started:
        started.wait_for("node_infiniband_state_id", 4)
        yield started


async def test_what_the_store_holds_is_exactly_what_the_trees_hold_at_the_time_of_the_scrape(
    store: Prometheus,
) -> None:
    (collector,) = query.build(PrometheusSpec(url=store.url, profile=PROFILES), site())
    sample = await collector.collect()
    await collector.close()
    check(sample)
    frames = [f for f in sample.frames if f.kind == "port"]
    assert {f.source for f in frames} == {f"n{i}:{INFINIBAND}" for i in range(2)}
    scraped = {
        s["metric"]["instance"].partition(".")[0]: [round(t * 1000) * 10**6 for t, _ in s["values"]]
        for s in store.ask('node_infiniband_state_id{device="mlx5_0"}[1m]')
    }
    assert all(f.time in scraped[f.source.partition(":")[0]] for f in frames)


async def test_a_selector_narrows_what_is_asked_for_and_a_wrong_one_is_told(store: Prometheus) -> None:
    spec = PrometheusSpec(url=store.url, profile=PROFILES, selector='instance=~"n1.*"')
    (collector,) = query.build(spec, site())
    assert {name.partition("/")[0] for name in values(await collector.collect())} == {"n1"}
    await collector.close()
    (wrong,) = query.build(spec.model_copy(update={"selector": "instance="}), site())
    says = r"the query failed \(bad_data\): .*parse error.*; check the selector"
    with pytest.raises(CollectorError, match=says):
        await wrong.collect()
    await wrong.close()


async def test_history_comes_in_blocks_of_a_range_query(store: Prometheus) -> None:
    http = Http(store.url, PrometheusSpec(url=store.url, profile=PROFILES), Path(), "test")
    end = float(int(time.time()) + 1)
    ask = Api(http).query_range("node_infiniband_state_id", end - 9, end, 1.0, points=4)
    blocks = [block async for block in ask]
    await http.close()
    times = np.concatenate([b.times for b in blocks])
    assert [len(b.times) for b in blocks] == [4, 4, 2]
    assert times.tolist() == [int(end - 9 + i) * 10**9 for i in range(10)]
    last = {labels_of(key)[1]["device"]: values[-1] for key, values in blocks[-1].series.items()}
    assert len(blocks[-1].series) == 4 and last == {"mlx5_0": 4.0, "mlx5_1": 1.0}


# --- under a running watch ---


@dataclass
class Busy:
    """Two hosts of which each sends RATE bytes a second on both ports, their exporters, and a store."""

    sysfs: Path
    n0: NodeExporter
    store: Prometheus


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Busy]:
    directory = tmp_path_factory.mktemp("busy")
    about = {"board_id": "MT_1", "fw_ver": "28.1", "hca_type": "MT4129"}
    for host in ("n0", "n1"):
        ports: Tree = {f"mlx5_{i}": {**device(ib_port()), **about} for i in range(2)}
        write(directory / "sys" / host, {"class": {"infiniband": ports}})
    ended = threading.Event()
    sender = threading.Thread(target=_send, args=(directory / "sys", ended))
    sender.start()
    hosts = {host: NodeExporter(directory / host, directory / "sys" / host) for host in ("n0", "n1")}
    store = Prometheus(directory / "store", {f"{host}:9100": exporter for host, exporter in hosts.items()})
    try:
        with hosts["n0"], hosts["n1"], store:
            yield Busy(directory / "sys", hosts["n0"], store)
    finally:
        ended.set()
        sender.join()


def _send(sysfs: Path, ended: threading.Event) -> None:
    files = list(sysfs.glob("*/class/infiniband/*/ports/1/counters/port_xmit_data"))
    began = time.time()
    while not ended.wait(0.02):
        for file in files:
            fresh = file.with_suffix(".new")
            fresh.write_text(str(int((time.time() - began) * RATE / 4)))
            fresh.replace(file)  # whole at any moment, as a file of /sys is


@contextlib.asynccontextmanager
async def watched(tmp_path: Path, *collectors: dict[str, object]) -> AsyncIterator[Watch]:
    (tmp_path / "wiring.yaml").write_text(WIRING)
    path = tmp_path / "site.yaml"
    path.write_text(yaml.safe_dump({"topology": {"file": "wiring.yaml"}, "collectors": list(collectors)}))
    watch = Watch(path)
    async with watch.live:
        task = asyncio.create_task(watch.run())
        yield watch
        await watch.live.close()
        await task


def rates(watch: Watch) -> dict[str, float]:
    """What each NIC port is known to send now, bytes/s."""
    snapshot = watch.live.twin.snapshot()
    column = snapshot.port.get("tx_bytes")
    names = watch.live.twin.topology.names("port")
    if column is None:
        return {}
    return {n: r for n, r in zip(names, column.tolist(), strict=True) if r == r and "nic" in n}


def sending(watch: Watch, ports: int) -> bool:
    found = list(rates(watch).values())
    return len(found) == ports and all(0.8 * RATE < rate < 1.2 * RATE for rate in found)


def only_telemetry(watch: Watch) -> bool:
    return {i.kind for i in watch.incidents} <= {"collector_failed", "telemetry_stale"}


def from_store(busy: Busy) -> dict[str, object]:
    return {"prometheus": {"url": busy.store.url, "profile": INFINIBAND, "every": "1s", "deadline": "3s"}}


def from_exporter(busy: Busy) -> dict[str, object]:
    return {"exporter": {"targets": {"n0": busy.n0.url}, "profile": INFINIBAND}}


async def test_an_exporter_that_dies_behind_a_live_store_is_stale_and_no_fault(busy: Busy, tmp_path: Path) -> None:
    async with watched(tmp_path, from_store(busy)) as watch:
        await watch.until(lambda: sending(watch, 4), "rates of all four ports")
        busy.n0.stop()
        stale = [("telemetry_stale", f"n0:{INFINIBAND}")]
        await watch.until(lambda: watch.open_() == stale, "telemetry_stale of n0 alone")
        read = watch.live.twin._kinds["port"].series["up"].time
        rows = watch.live.twin.topology.rows("port")
        assert read[rows["n0/nic0/p0"]] < read[rows["n1/nic0/p0"]] - 5e9  # old, and shown as old
        busy.n0.start()
        await watch.until(lambda: watch.open_() == [] and sending(watch, 4), "rates after the gap")
        assert [i.kind for i in watch.incidents] == ["telemetry_stale"]


async def test_an_exporter_that_is_read_directly_and_restarted_is_a_gap_and_no_fault(
    busy: Busy, tmp_path: Path
) -> None:
    async with watched(tmp_path, from_exporter(busy)) as watch:
        await watch.until(lambda: sending(watch, 2), "rates of both ports")
        busy.n0.stop()
        failed = ("collector_failed", f"n0:{INFINIBAND}")
        await watch.until(lambda: failed in watch.open_(), "collector_failed")
        busy.n0.start()
        await watch.until(lambda: watch.open_() == [] and sending(watch, 2), "rates after the gap")
        assert only_telemetry(watch)


async def test_a_port_that_goes_down_is_one_link_down(busy: Busy, tmp_path: Path) -> None:
    async with watched(tmp_path, from_exporter(busy)) as watch:
        await watch.until(lambda: sending(watch, 2), "rates of both ports")
        state = busy.sysfs / "n0/class/infiniband/mlx5_1/ports/1/state"
        state.write_text("1: DOWN")
        await watch.until(lambda: watch.open_() == [("link_down", "n0/nic1/p0")], "one link_down")
        state.write_text("4: ACTIVE")
        await watch.until(lambda: watch.open_() == [], "its end")


async def test_a_store_that_is_restarted_is_a_gap_and_no_fault(busy: Busy, tmp_path: Path) -> None:
    async with watched(tmp_path, from_store(busy)) as watch:
        await watch.until(lambda: sending(watch, 4), "rates of all four ports")
        assert watch.incidents == ()
        busy.store.stop()
        name = f"prometheus:127.0.0.1:{busy.store.port}"
        await watch.until(lambda: ("collector_failed", name) in watch.open_(), "collector_failed")
        assert "cannot be reached" in str(watch.live.health()[0].last_error)
        busy.store.start()
        await watch.until(lambda: watch.open_() == [] and sending(watch, 4), "rates after the gap")
        assert only_telemetry(watch)
