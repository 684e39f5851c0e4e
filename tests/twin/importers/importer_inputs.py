"""Fixtures of every format, and the shortest way from a file to its wiring."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from twin.topology.explicit import to_wiring
from twin.topology.importers import file
from twin.topology.importers.combine import Request, discover
from twin.topology.importers.sketch import Sizes
from twin.topology.model import Topology
from twin.topology.wiring import read_wiring
from twin.yamlfile import Document

FIXTURES = Path(__file__).parents[2] / "fixtures" / "topology"
SAMPLES = Path(__file__).parents[4] / "shared" / "samples"
FORMATS = {  # option -> its fixtures
    "air": ["air.json"],
    "spectrum-x": ["spectrum_x.json"],
    "netq": ["netq.json"],
    "slurm": ["topology.conf", "topology.yaml"],
    "containerlab": ["lab.clab.yml"],
    "topograph": ["topograph.yaml", "topograph-h100.yaml"],
    "lldp": ["lldp.json"],
    "nvidia-smi": ["topo-m.txt"],
    "nccl": ["nccl.xml"],
    "nvml": ["nvml.json"],
}
CASES = [(option, name) for option, names in FORMATS.items() for name in names]


def found(option: str, *values: str | Path, sizes: Sizes | None = None, **more: list[str]) -> Topology:
    """What a discovery from these files finds; more: other options with their values."""
    sources = {option: [str(v) for v in values], **{k.replace("_", "-"): v for k, v in more.items()}}
    return discover(Request(sources, sizes or Sizes()))


def wired(topo: Topology) -> dict[str, Any]:
    """The wiring as a file holds it, after it has been written and read again."""
    text = file.text(topo)
    again = to_wiring(read_wiring(Document("discovered.yaml", text)))
    assert again["links"] == yaml.safe_load(text)["links"]
    return again


def links(topo: Topology) -> set[tuple[str, str]]:
    return {(link["a"], link["b"]) for link in wired(topo)["links"]}
