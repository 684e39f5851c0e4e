"""Hardware facts as data: the `.toml` files beside this one, each entry with its source; one loader.

A site may have a file of its own in the same form: named in the environment variable FABRICTWIN_CATALOG (several
with the path separator between them), or given to `extend`. Its entries add to the shipped ones and replace those
of the same name. Nothing is read until somebody asks.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path

from twin.catalog.schema import KINDS, Tables, problems
from twin.errors import InputError

FILES = ("gpus.toml", "nics.toml", "switches.toml", "servers.toml", "racks.toml", "power.toml")
VARIABLE = "FABRICTWIN_CATALOG"
_extra: list[Path] = []


@cache
def hardware() -> Tables:
    """The catalogue: {"gpu" | "nic" | "switch" | "server" | "rack" | "power_shelf": {key: facts}}.

    Raises InputError with every mistake in it: file, key, value and what was expected.
    """
    own = [Path(p) for p in os.environ.get(VARIABLE, "").split(os.pathsep) if p]
    return read([*own, *_extra])


def extend(path: Path) -> None:
    """Adds a site's own catalogue file for this process. Raises InputError and changes nothing if it is malformed."""
    read([*_extra, path])
    _extra.append(path)
    hardware.cache_clear()


def read(own: Iterable[Path] = ()) -> Tables:
    """The shipped catalogue and these files, checked."""
    texts = [(name, files(__name__).joinpath(name).read_text("utf-8")) for name in FILES]
    texts += [(str(path), _text(path)) for path in own]
    parsed = [(name, _parse(name, text)) for name, text in texts]
    out: Tables = {kind: {} for kind in KINDS}
    for _, tables in parsed:
        for kind, entries in tables.items():
            if kind in out and isinstance(entries, dict):
                out[kind].update(entries)
    if wrong := [p for name, tables in parsed for p in problems(name, tables, out)]:
        raise InputError(wrong)
    return out


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "not UTF-8 text"
        raise InputError(f"{path}: the catalogue file cannot be read: {reason}") from problem


def _parse(name: str, text: str) -> Tables:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise InputError(f"{name}: not TOML: {problem}") from problem


def switch_ports(model: str, speed: str) -> int:
    """How many ports switch `model` has at `speed` (`400G`); 0 where the catalogue does not say."""
    return int(hardware()["switch"].get(model, {}).get("ports", {}).get(speed, 0))


def max_switch_ports(model: str) -> int:
    """The most ports switch `model` can be split into; 0 where the catalogue does not know it."""
    return max(hardware()["switch"].get(model, {}).get("ports", {}).values(), default=0)
