"""Settings: a TOML file that a person writes; fabrictwin only ever reads it. What the screen remembers by itself
stands in a file of its own (`tui/remembered.py`), and gives way to what is set here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from platformdirs import user_config_path

from tui.colours import COLOURS
from tui.keymap import FIXED, KEYS, is_key

VIEWS = ("overview", "planes", "nvlink", "gpus", "power", "incidents", "whatif")
TEMPLATE = """\
# Settings of fabrictwin. What is commented out is as shipped; a name that is not known is refused.
# Without `theme` and `view` the screen comes back in the colours and in the view it was left in.

# theme = "dark"           # {themes}
# view = "overview"        # the view to begin with: {views}

[keys]                     # what is done = a character, space, f1 to f12, or ctrl+letter
{keys}
"""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a person has set. theme, view: empty where they leave it to the screen. keys: only those changed."""

    theme: str = ""
    view: str = ""
    keys: Mapping[str, str] = field(default_factory=dict)


def settings_path() -> Path:
    """Where the settings are looked for, be there a file or not."""
    return user_config_path("fabrictwin", appauthor=False) / "settings.toml"


def template() -> str:
    """A settings file in which everything stands, commented out."""
    keys = "\n".join(f"# {name} = {quoted(key)}" for name, key in KEYS.items())
    return TEMPLATE.format(themes=", ".join(COLOURS), views=", ".join(VIEWS), keys=keys)


def quoted(text: str) -> str:
    """`text` as a TOML string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def read_settings(path: Path) -> tuple[Settings, list[str]]:
    """The settings of a file, and a line for each mistake in it; what is right is used all the same, but no key is
    changed where two would do the same. A file that is not there says nothing.
    """
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return Settings(), []
    except UnicodeDecodeError:
        return Settings(), [f"{path}: not UTF-8 text; is it a settings file?"]
    except OSError as problem:
        return Settings(), [f"{path}: cannot be read: {problem.strerror}"]
    import tomllib

    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        said, line = str(problem), re.search(r"at line (\d+)", str(problem))
        where = f":{line.group(1)}" if line else ""
        return Settings(), [f"{path}{where}: not TOML: {said}"]
    return _Checker(str(path), text).settings(tables)


class _Checker:
    """Goes through a parsed file and notes its mistakes, each with its line."""

    def __init__(self, path: str, text: str) -> None:
        self._path, self._lines = path, text.splitlines()
        self._problems: list[tuple[int, str]] = []

    def settings(self, tables: dict[str, Any]) -> tuple[Settings, list[str]]:
        known = {"theme", "view", "keys"}
        for name in tables.keys() - known:
            self._wrong(name, "", f"{name!r} is no setting", name, known)
        found = Settings(
            self._choice(tables, "theme", COLOURS), self._choice(tables, "view", VIEWS), self._keys(tables)
        )
        return found, [said for _, said in sorted(self._problems)]

    def _choice(self, tables: dict[str, Any], name: str, known: Iterable[str]) -> str:
        value = tables.get(name, "")
        if name not in tables or (isinstance(value, str) and value in known):
            return str(value)
        self._wrong(name, "", f"{name} is {value!r}", str(value), known)
        return ""

    def _keys(self, tables: dict[str, Any]) -> dict[str, str]:
        given = tables.get("keys", {})
        if not isinstance(given, dict):
            self._say("keys", "", f"keys is {given!r}; expected a table, [keys]")
            return {}
        right: dict[str, str] = {}
        for name, key in given.items():
            if name not in KEYS:
                self._wrong(name, "keys", f"{name!r} has no key that can be changed", name, KEYS)
            elif not isinstance(key, str) or not is_key(key):
                said = f"{name} is {key!r}; expected a character, space, f1 to f12, or ctrl+letter"
                self._say(name, "keys", said)
            elif key in FIXED:
                self._say(
                    name, "keys", f"{name} is {key!r}, which a terminal or the screen uses already; choose another"
                )
            else:
                right[name] = key
        return self._apart(right)

    def _apart(self, keys: dict[str, str]) -> dict[str, str]:
        """Those keys that do one thing only."""
        users: dict[str, list[str]] = {}
        for name, key in (KEYS | keys).items():
            users.setdefault(key, []).append(name)
        for name, key in keys.items():
            if others := [other for other in users[key] if other != name]:
                self._say(name, "keys", f"{name} is {key!r}, the key of {' and '.join(others)}; each needs its own")
        return keys if all(len(users[key]) == 1 for key in keys.values()) else {}

    def _wrong(self, name: str, table: str, said: str, value: str, known: Iterable[str]) -> None:
        from difflib import get_close_matches

        names = list(known)
        near = get_close_matches(value, names, 1)
        hint = f"did you mean {near[0]}?" if near else f"expected one of {', '.join(sorted(names))}"
        self._say(name, table, f"{said}; {hint}")

    def _say(self, name: str, table: str, said: str) -> None:
        line = self._line(name, table)
        self._problems.append((line, f"{self._path}{f':{line}' if line else ''}: {said}"))

    def _line(self, name: str, table: str) -> int:
        """The line that sets `name`, counted from 1: in its table, else where the table itself is; 0 if not found."""
        within, at = "", 0
        for number, line in enumerate(self._lines, 1):
            if head := re.match(r"\s*\[+\s*[\"']?([^\]\"']+?)[\"']?\s*\]", line):
                within = head.group(1)
                at = number if within in (name, table) else at
            elif begun := re.match(r"\s*([^=#]+?)\s*=", line):
                key = begun.group(1).replace('"', "").replace("'", "").replace(" ", "")
                if (within == table and key == name) or (not within and table and key == f"{table}.{name}"):
                    return number
                if not within and key.split(".")[0] in (name, table):
                    at = at or number
        return at
