"""Thresholds to judge a trace by: of this version, of another one, or of a site."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from replay.trace import Trace
from twin.detectors.rules import Rules
from twin.errors import InputError
from twin.yamlfile import load

SHIPPED, RECORDED = "shipped", "recorded"


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Thresholds with the name by which they were asked for. notes: what in their file this version does not have."""

    name: str
    rules: Rules
    notes: tuple[str, ...] = ()


def rule_set(argument: str, trace: Trace) -> RuleSet:
    """`shipped` with this version, `recorded` with the trace, or those in a file: a site file or a mapping of rules
    to numbers in YAML, or the rules.toml of any version.

    What a file does not set is as shipped. Raises InputError for a rule that a site cannot have; a rules.toml may be
    of a version that had others.
    """
    if argument == SHIPPED:
        return RuleSet(SHIPPED, Rules.load())
    if argument == RECORDED:
        return RuleSet(RECORDED, Rules.load((trace.site or {}).get("rules")))
    path = Path(argument)
    if path.suffix == ".toml":
        return _of_version(path)
    data = load(path).data
    values = data.get("rules", {}) if isinstance(data, dict) and ({"topology", "rules"} & set(data)) else data
    if not isinstance(values, Mapping):
        raise InputError(f"{path}: expected a site file, or rules and their numbers, such as `link_debounce: 2`")
    try:
        return RuleSet(path.name, Rules.load(values))
    except InputError as problem:
        raise InputError([f"{path}: {text}" for text in problem.problems]) from problem


def differences(a: Rules, b: Rules) -> dict[str, tuple[float, float]]:
    """Rule -> its two values, for those that differ."""
    ours, theirs = asdict(a), asdict(b)
    return {name: (value, theirs[name]) for name, value in ours.items() if theirs[name] != value}


def _of_version(path: Path) -> RuleSet:
    try:
        entries: Mapping[str, Any] = tomllib.loads(path.read_text("utf-8"))
    except OSError as problem:
        raise InputError(f"{path}: cannot be read: {problem.strerror}") from problem
    except ValueError as problem:
        raise InputError(f"{path}: not TOML: {problem}") from problem
    values = {name: entry["value"] if isinstance(entry, dict) else entry for name, entry in entries.items()
              if not isinstance(entry, dict) or "value" in entry}  # fmt: skip
    known = asdict(Rules.load())
    strange = sorted(set(values) - set(known))
    if values and len(strange) == len(values):
        raise InputError(f"{path}: none of its entries is a rule of a fabrictwin")
    notes = [f"{path}: this version has no rule {', '.join(strange)}"] if strange else []
    missing = sorted(set(known) - set(values))
    if missing and notes:
        notes.append(f"{path}: as shipped, since it does not say: {', '.join(missing)}")
    try:
        return RuleSet(path.name, Rules.load({n: v for n, v in values.items() if n in known}), tuple(notes))
    except InputError as problem:
        raise InputError([f"{path}: {text}" for text in problem.problems]) from problem
