"""Exporter pages and answers of the query API, to finished frames."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from collectors.portnames import PortNames
from collectors.prometheus.api import Api
from collectors.prometheus.http import Http, Reply
from collectors.prometheus.places import Places
from collectors.prometheus.profiles import load_profiles
from collectors.prometheus.query import PrometheusCollector
from collectors.prometheus.scrape import ExporterCollector
from tests.benchmarks.measure import compare
from twin.sitespecs import PrometheusSpec
from twin.topology.model import Topology
from twin.topology.presets import preset

PROFILE = "dcgm-exporter"
GPU = ("DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_GPU_UTIL",
       "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_XID_ERRORS")  # fmt: skip
LINK = ("DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL",
        "DCGM_FI_DEV_NVLINK_COUNT_TX_BYTES")  # fmt: skip
ROUNDS = 30


def run() -> Iterator[str]:
    """CPU to finished frames: of an exporter's page of 480 readings, beside the official parser, which makes none; of
    100,000 series from the query API, beside decoding the same JSON with the standard library."""
    topology = preset("b300-superpod-ethernet", scalable_units=4)
    yield _page(topology)
    yield _answer(topology)


def _page(topology: Topology) -> str:
    from prometheus_client.parser import text_string_to_metric_families

    collector = ExporterCollector("n000", _http(), _places(topology, "n000"))
    pages = [Reply(200, "text/plain", exporter_page("n000", turn)) for turn in range(ROUNDS)]
    turn = iter(range(1, ROUNDS + 1))

    def ours() -> None:
        number = next(turn)
        collector.read(pages[number - 1], number * 10**9)

    mine = _cpu(ours, ROUNDS)
    stock = _cpu(lambda: list(text_string_to_metric_families(pages[0].body.decode())), 5)
    return compare(f"page of {len(collector._page.keys)} readings", mine, "prometheus_client", stock)


def _answer(topology: Topology) -> str:
    api = Api(_http())
    collector = PrometheusCollector("p", api, _http(), _places(topology), load_profiles([PROFILE], Path()))
    replies = [Reply(200, "application/json", query_answer(100_000, turn)) for turn in range(6)]
    rest = iter(replies)
    first = _cpu(lambda: collector._read(next(rest)), 1)
    known = _cpu(lambda: collector._read(next(rest)), len(replies) - 1)
    stock = _cpu(lambda: json.loads(replies[0].body), 3)
    return f"{compare('100,000 known series', known, 'json.loads', stock)}   (when they are new: {first:.2f} s)"


def _http() -> Http:
    return Http("http://localhost:9090", PrometheusSpec(url="", profile=[PROFILE]), Path(), "benchmark")


def _places(topology: Topology, own: str | None = None) -> Places:
    return Places(load_profiles([PROFILE], Path()), topology, PortNames(topology), own=own)


def exporter_page(host: str, turn: int) -> bytes:
    """8 GPUs, 6 metrics of each and 3 of each of 18 NVLinks: 480 readings."""
    lines = []
    for metric in (*GPU, *LINK):
        lines += [f"# HELP {metric} What it is.", f"# TYPE {metric} gauge"]
        lines += [f"{metric}{labels} {value}" for labels, value in _series(metric, host, turn)]
    return "\n".join([*lines, ""]).encode()


def _series(metric: str, host: str, turn: int) -> Iterator[tuple[str, str]]:
    for gpu in range(8):
        rest = f'pci_bus_id="00000000:{gpu:02X}:00.0",device="nvidia{gpu}"'
        uuid = f"GPU-c4529c8d-69c4-b61d-e0bc-7b246009600{gpu}"
        if metric in GPU:
            labels = f'{{gpu="{gpu}",UUID="{uuid}",{rest},modelName="NVIDIA B300",Hostname="{host}"}}'
            yield labels, f"{30 + gpu + turn}.250000"
        else:
            for link in range(18):
                labels = f'{{nvlink="{link}",gpu="{gpu}",gpu_uuid="{uuid}",{rest},hostname="{host}"}}'
                yield labels, str(turn * 10**9 + link)


def query_answer(count: int, turn: int) -> bytes:
    """The matrix of `count` series of many such hosts, each with one sample."""
    result = []
    for host in range(count // 480 + 1):
        for metric in (*GPU, *LINK):
            for gpu in range(8):
                for link in [None] if metric in GPU else range(18):
                    labels = {"__name__": metric, "Hostname": f"n{host:03d}", "UUID": f"GPU-{host}-{gpu}"}
                    labels |= {"device": f"nvidia{gpu}", "gpu": str(gpu), "instance": f"n{host:03d}:9400"}
                    labels |= {"job": "dcgm", "modelName": "NVIDIA B300"}
                    if link is not None:
                        labels["nvlink"] = str(link)
                    values = [[1_700_000_000 + 5 * turn + 0.001 * host, str(turn * 10**9 + gpu)]]
                    result.append({"metric": labels, "values": values})
    data = {"resultType": "matrix", "result": result[:count]}
    return json.dumps({"status": "success", "data": data}, separators=(",", ":")).encode()


def _cpu(work: Callable[[], object], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return statistics.median(times)
