"""The wiring file with short entries as text, laid out for a person who goes on to edit it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from textwrap import wrap
from typing import Any

from twin.topology.model import Topology
from twin.topology.short.pattern import holds_range
from twin.topology.short.write import to_short

_WIDTH = 110
_RANGES = (
    "Ranges: n[000-063] stands for 64 names. Ranges with one letter, [i=0-63], move together; x4 after one moves it "
    "in runs of four. Single entries written out always work too; see docs/wiring.md."
)
_ABOUT = {
    "planes": "a NIC port belongs to the plane of the switch it is cabled to",
    "nodes": "hosts; GPU i uses NIC i unless nic_of_gpu says otherwise",
    "switches": "tier is leaf, spine or core; label is the name that was found, where it had to change",
    "links": "speed is the designed one; cable: nic is one a NIC, 2 one for each two ports of the switch in a",
    "domains": "NVLink domains; gpus: 8 are those of the node of that name; speed is of one link in one direction",
    "racks": 'feeds with watts make power checks possible: [{name: "{name}/feed[0-3]", watts: 33000}]',
    "jobs": "what an incident costs is told for each",
}


def short_yaml(topo: Topology, notes: Iterable[str] = (), title: str = "") -> str:
    """The text of a wiring file. notes: what a reader should know, as comments at the head, under the title."""
    wiring = to_short(topo)
    lines = _comment(title or f"Wiring of {topo.name}.", "# ", "# ")
    for note in notes:
        lines += _comment(note, "# - ", "#   ")
    if wiring.get("ranges", True) and holds_range(repr([wiring["nodes"], wiring["links"]])[1:-1]):
        lines += ["#", *_comment(_RANGES, "# ", "# ")]
    out = "\n".join(lines) + "\n\n" + _dump("name", wiring.pop("name"))
    for key, value in wiring.items():
        if value != [] or key == "nodes":
            out += (f"\n# {_ABOUT[key]}\n" if key in _ABOUT and value else "") + _dump(key, value)
    return out


def _comment(text: str, first: str, then: str) -> list[str]:
    plain = "".join(c if c.isprintable() else "?" for c in text)
    return wrap(plain, _WIDTH, initial_indent=first, subsequent_indent=then, break_on_hyphens=False)


class _Row(dict[str, Any]):
    """A mapping that is written on one line."""


def _dump(key: str, value: Any) -> str:
    if isinstance(value, list):
        value = [_Row(item) if isinstance(item, dict) else item for item in value]
    import yaml

    text: str = yaml.dump(
        {key: value}, Dumper=_dumper(), sort_keys=False, width=100_000, allow_unicode=True,
        default_flow_style=None if isinstance(value, list) else False,
    )  # fmt: skip
    return text


@cache
def _dumper() -> Any:
    import yaml

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        """Keeps the representation of rows to itself."""

    Dumper.add_representer(
        _Row, lambda dumper, row: dumper.represent_mapping("tag:yaml.org,2002:map", row.items(), flow_style=True)
    )
    return Dumper
