"""What an entry of the catalogue must look like, and what is said of one that does not.

Written by hand rather than with a modelling library: the catalogue is read on the way to the first screen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Key:
    """A key of an entry. form: number, count, text, texts, reasons, ports, or name (of an entry of kind `of`)."""

    form: str
    required: bool = True
    least: float = 0.0
    of: str = ""


_ABOVE_ZERO = 1e-9
_COMMON = {
    "name": Key("text"),
    "source": Key("text"),
    "conflicts": Key("texts", required=False),
    "estimated": Key("reasons", required=False),
}
SCHEMA: dict[str, dict[str, Key]] = {
    "gpu": {
        "nvlink_links": Key("count"),
        "nvlink_link_bytes_per_second": Key("number"),
        "power_limit_watts": Key("number", least=_ABOVE_ZERO),
        "least_power_limit_watts": Key("number", required=False, least=_ABOVE_ZERO),
        "memory_bytes": Key("number", required=False, least=_ABOVE_ZERO),
        "nvlink_generation": Key("count", required=False),
    },
    "nic": {"port_bits_per_second": Key("number", least=_ABOVE_ZERO), "planes": Key("count", least=1)},
    "switch": {
        "capacity_bits_per_second": Key("number", least=_ABOVE_ZERO),
        "ports": Key("ports"),
        "xmit_wait_tick_bytes": Key("number", required=False, least=_ABOVE_ZERO),
    },
    "server": {
        "gpu": Key("name", of="gpu"),
        "gpus": Key("count", least=1),
        "nic": Key("name", of="nic"),
        "nics": Key("count"),
        "nic_bits_per_second": Key("number", least=_ABOVE_ZERO),
        "nvswitches": Key("count"),
        "power_watts": Key("number", required=False, least=_ABOVE_ZERO),
        "psus": Key("count", required=False),
        "psu_watts": Key("number", required=False, least=_ABOVE_ZERO),
        "spare_psus": Key("count", required=False),
    },
    "rack": {
        "server": Key("name", of="server"),
        "servers": Key("count", least=1),
        "nvswitches": Key("count"),
        "power_watts": Key("number", required=False, least=_ABOVE_ZERO),
        "power_shelf": Key("name", required=False, of="power_shelf"),
        "power_shelves": Key("count", required=False),
    },
    "power_shelf": {
        "capacity_watts": Key("number", least=_ABOVE_ZERO),
        "psus": Key("count", least=1),
        "psu_watts": Key("number", least=_ABOVE_ZERO),
    },
}
KINDS = tuple(SCHEMA)

Entry = dict[str, Any]
Tables = dict[str, dict[str, Entry]]


def problems(file: str, tables: Mapping[str, Any], known: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Everything wrong with the tables of one file. known: all entries by kind, these among them."""
    out = []
    for kind, entries in tables.items():
        if kind not in SCHEMA:
            out.append(f"{file}: {kind}: unknown kind; expected one of {', '.join(KINDS)}")
        elif not isinstance(entries, dict):
            out.append(f"{file}: {kind}: {entries!r}: expected tables such as [{kind}.my-{kind}]")
        else:
            for name, entry in entries.items():
                out.extend(_entry(f"{file}: {kind}.{name}", kind, entry, known))
    return out


def _entry(where: str, kind: str, entry: Any, known: Mapping[str, Mapping[str, Any]]) -> list[str]:
    if not isinstance(entry, dict):
        return [f"{where}: {entry!r}: expected a table"]
    keys = _COMMON | SCHEMA[kind]
    out = [
        f"{where}: {key} is missing: expected {_expected(k)}"
        for key, k in keys.items()
        if k.required and key not in entry
    ]
    for key, value in entry.items():
        if key not in keys:
            out.append(f"{where}.{key}: {value!r}: unknown key; a {kind} has {', '.join(keys)}")
        elif not _fits(keys[key], value, entry, known):
            out.append(f"{where}.{key}: {value!r}: expected {_expected(keys[key])}")
    return out


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value


def _fits(key: Key, value: Any, entry: Entry, known: Mapping[str, Mapping[str, Any]]) -> bool:
    match key.form:
        case "number":
            return _number(value) and key.least <= value < 1e18
        case "count":
            return isinstance(value, int) and not isinstance(value, bool) and value >= key.least
        case "text":
            return isinstance(value, str) and bool(value.strip())
        case "name":
            return isinstance(value, str) and value in known.get(key.of, {})
        case "texts":
            return isinstance(value, list) and all(isinstance(v, str) and v for v in value)
        case "reasons":
            return isinstance(value, dict) and all(k in entry and isinstance(v, str) and v for k, v in value.items())
        case _:
            return isinstance(value, dict) and bool(value) and all(_number(v) and v >= 1 for v in value.values())


def _expected(key: Key) -> str:
    above = "above 0" if key.least == _ABOVE_ZERO else f"of at least {key.least:g}"
    return {
        "number": f"a number {above}",
        "count": f"a whole number {above}",
        "text": "a text",
        "name": f"the key of a {key.of} in the catalogue",
        "texts": "a list of texts",
        "reasons": "a table of keys of this entry, each with the reason it is estimated",
        "ports": 'a table of speeds and counts such as { "400G" = 64 }',
    }[key.form]
