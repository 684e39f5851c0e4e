"""A small fabric whose traffic crosses leaves."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from twin.topology.model import Topology
from twin.topology.wiring import read_wiring
from twin.yamlfile import Document

_FILE = Path(__file__).parents[2] / "replay" / "postmortems" / "fabric.yaml"


@cache
def two_leaves() -> Topology:
    """The one of the postmortems: 8 nodes of 2 GPUs on two planes of two leaves and two spines."""
    return read_wiring(Document(_FILE.name, _FILE.read_text("utf-8")))
