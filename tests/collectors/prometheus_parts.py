"""What the tests of the Prometheus collectors share: a small wiring, a site, pages to frames, a server that errs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from collectors.base import Sample
from collectors.prometheus import query, scrape
from collectors.prometheus.http import Reply
from collectors.prometheus.query import PrometheusCollector
from collectors.prometheus.scrape import ExporterCollector
from twin.site import Site
from twin.sitespecs import ExporterSpec, PrometheusSpec
from twin.topology.model import Topology
from twin.topology.wiring import read_wiring
from twin.yamlfile import Document

FIXTURES = Path(__file__).parents[1] / "fixtures/prometheus"
NOW = 1_800_000_000 * 10**9

WIRING = """
name: mini
planes: [A]
nodes:
  - {name: n0, gpu_model: b300, gpus: 2, nics: 2}
  - {name: n1, gpu_model: b300, gpus: 2, nics: 2}
switches:
  - {name: A-leaf-0, tier: leaf, plane: A}
links:
  - {a: n0/nic0/p0, b: A-leaf-0/p1, speed: 400G}
  - {a: n0/nic1/p0, b: A-leaf-0/p2, speed: 400G}
  - {a: n1/nic0/p0, b: A-leaf-0/p3, speed: 400G}
  - {a: n1/nic1/p0, b: A-leaf-0/p4, speed: 400G}
domains:
  - {name: d0, gpus: [n0/gpu0, n0/gpu1, n1/gpu0, n1/gpu1], switches: [d0/nvsw0], links_per_gpu: 18, speed: 50GB/s}
"""


def wiring() -> Topology:
    return read_wiring(Document("wiring.yaml", WIRING))


def site(directory: Path = Path()) -> Site:
    return Site("mini", wiring(), directory=directory)


def exporter(
    profile: str | list[str], target: str = "n0", directory: Path = Path(), **options: Any
) -> ExporterCollector:
    spec = ExporterSpec(targets={target: "http://127.0.0.1:9"}, profile=profile, **options)
    (collector,) = scrape.build(spec, site(directory))
    assert isinstance(collector, ExporterCollector)
    return collector


def store(url: str, profile: str | list[str], **options: Any) -> PrometheusCollector:
    (collector,) = query.build(PrometheusSpec(url=url, profile=profile, **options), site())
    assert isinstance(collector, PrometheusCollector)
    return collector


def read(page: str | Path, profile: str | list[str], **options: Any) -> Sample:
    """The sample that an exporter's page gives."""
    text = page.read_text() if isinstance(page, Path) else page
    return exporter(profile, **options).read(Reply(200, "text/plain", text.encode()), NOW)


def values(sample: Sample) -> Mapping[str, dict[str, float]]:
    """Address to what is known of it, whole counters as whole numbers."""
    found: dict[str, dict[str, float]] = {}
    for frame in sample.frames:
        for metric, column in frame.columns.items():
            unknown = 2**64 - 1 if column.dtype == "uint64" else float("nan")
            for name, value in zip(frame.names, column.tolist(), strict=True):
                row = found.setdefault(name, {})
                if frame.kind != "source" and value != unknown and value == value:
                    row[metric] = value
    return {name: row for name, row in found.items() if "/" in name or row}


@asynccontextmanager
async def server(answer: bytes | None) -> AsyncIterator[str]:
    """The URL of an HTTP server that answers each request with these bytes and hangs up; None: it never answers."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if answer is None:
            await asyncio.sleep(60)
        else:
            writer.write(answer)
            await writer.drain()
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    finally:
        listening.close()


def response(status: str, content_type: str, body: bytes | str, *more: str) -> bytes:
    data = body if isinstance(body, bytes) else body.encode()
    head = [f"HTTP/1.1 {status}", f"Content-Type: {content_type}", f"Content-Length: {len(data)}", *more, "", ""]
    return "\r\n".join(head).encode() + data
