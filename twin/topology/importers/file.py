"""The file that a discovery writes: the explicit form, laid out for a person who goes on to edit it."""

from __future__ import annotations

from textwrap import wrap
from typing import Any

from twin.topology.explicit import to_wiring
from twin.topology.importers.source import printable
from twin.topology.model import Topology

_WIDTH = 110
_ABOUT = {
    "planes": "a NIC port belongs to the plane of the switch it is cabled to",
    "nodes": "hosts; nic_of_gpu gives for each GPU the place of its NIC in nics, where that is not one to one",
    "switches": "tier is leaf, spine or core; label is the name that was found, where it had to change",
    "links": "speed is the designed one: a link that runs slower is reported",
    "domains": "NVLink domains; speed is that of one link in one direction",
    "racks": "feeds with watts make power checks possible: {name: RACK/feedA, watts: 33000}",
}


def text(topo: Topology) -> str:
    """The wiring as YAML: notes first, then a part a section, one entity a line."""
    lines = ["# Discovered wiring. Check what was inferred:"] if topo.notes else ["# Discovered wiring."]
    for note in topo.notes:
        lines += wrap(
            printable(note), _WIDTH, initial_indent="# - ", subsequent_indent="#   ", break_on_hyphens=False
        )
    out = "\n".join(lines) + "\n\n"
    for key, value in to_wiring(topo).items():
        if value in ([], None) and key in ("domains", "racks", "jobs"):
            continue
        about = f"\n# {_ABOUT[key]}\n" if key in _ABOUT and value else ""
        out += about + _section(key, value)
    return out


class _Row(dict[str, Any]):
    """A mapping that is written on one line."""


def _section(key: str, value: Any) -> str:
    """One top-level key; of a list of entities one a line, domains in a block each since they name many GPUs."""
    import yaml

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        """Keeps the representation of rows to itself."""

    Dumper.add_representer(
        _Row, lambda dumper, row: dumper.represent_mapping("tag:yaml.org,2002:map", row.items(), flow_style=True)
    )
    wide = key != "domains"
    if wide and isinstance(value, list):
        value = [_Row(item) if isinstance(item, dict) else item for item in value]
    flow = None if isinstance(value, list) else False
    dumped: str = yaml.dump(
        {key: value}, Dumper=Dumper, sort_keys=False, default_flow_style=flow, width=10_000 if wide else _WIDTH,
        allow_unicode=True,
    )  # fmt: skip
    return dumped
