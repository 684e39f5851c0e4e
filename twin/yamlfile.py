"""YAML input checked against a model: every error at once, each with file, line, value and what was expected."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from twin.errors import InputError

Model = TypeVar("Model", bound=BaseModel)
Place = tuple[str | int, ...]

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_SHOWN = 60
_DEEPEST = 60
_MOST_REPEATED = 100_000  # values reached through aliases: more is a mistake or an attack


class Strict(BaseModel):
    """A part of a file that refuses keys it does not know."""

    model_config = ConfigDict(extra="forbid")


class Document:
    """Parsed YAML that remembers the line of every value."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.data: Any = None
        self._lines: dict[Place, int] = {}
        self._seen: set[int] = set()
        self._repeated = 0
        try:
            loader = _LOADER(text)
            try:
                root = loader.get_single_node()
                if root is not None:
                    self._walk(root, ())
                    self.data = loader.construct_document(root)
            finally:
                loader.dispose()
        except yaml.MarkedYAMLError as problem:
            mark = problem.problem_mark or problem.context_mark
            line = mark.line + 1 if mark else 1
            raise InputError(f"{path}:{line}: not YAML: {problem.problem or problem.context}") from problem
        except (yaml.YAMLError, ValueError, TypeError, KeyError, AttributeError, OverflowError) as problem:
            raise InputError(f"{path}: not YAML: {str(problem).splitlines()[0]}") from problem
        self._seen.clear()

    def _walk(self, node: yaml.Node, place: Place) -> None:
        line = node.start_mark.line + 1
        if len(place) > _DEEPEST:
            raise InputError(f"{self.path}:{line}: nested more than {_DEEPEST} deep")
        if id(node) in self._seen:  # reached through an alias
            self._repeated += 1
            if self._repeated > _MOST_REPEATED:
                raise InputError(f"{self.path}:{line}: its aliases repeat more than {_MOST_REPEATED:,} values")
        self._seen.add(id(node))
        self._lines[place] = line
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    raise InputError(f"{self.path}:{key.start_mark.line + 1}: a key must be a plain word")
                self._walk(value, (*place, key.value))
                self._lines[(*place, key.value)] = key.start_mark.line + 1
        elif isinstance(node, yaml.SequenceNode):
            for i, value in enumerate(node.value):
                self._walk(value, (*place, i))

    def line(self, place: Place) -> int:
        """The line of the value at `place`, or of the nearest thing around it."""
        while place and place not in self._lines:
            place = place[:-1]
        return self._lines.get(place, 1)

    def problem(self, place: Place, message: str) -> str:
        where = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in place).lstrip(".")
        return f"{self.path}:{self.line(place)}: {where + ': ' if where else ''}{message}"

    def check(self, model: type[Model]) -> Model:
        """The document as `model`. Raises InputError with every problem found."""
        checked, problems = self.validate(model)
        if checked is None:
            raise InputError([text for _, text in problems])
        return checked

    def validate(self, model: type[Model]) -> tuple[Model | None, list[tuple[Place, str]]]:
        """The document as `model`, or None and every problem with its place."""
        if not isinstance(self.data, dict):
            text = f"{self.path}:{self.line(())}: expected a mapping of keys to values, found {_show(self.data)}"
            return None, [((), text)]
        try:
            return model.model_validate(self.data), []
        except ValidationError as problem:
            return None, [(tuple(e["loc"]), self._explain(e)) for e in problem.errors(include_url=False)]

    def _explain(self, error: Any) -> str:
        place: Place = tuple(error["loc"])
        kind, value = error["type"], error.get("input")
        if kind == "missing":
            return self.problem(place[:-1], f"{place[-1]!r} is missing")
        if kind == "extra_forbidden":
            return self.problem(place, "unknown key")
        if kind == "value_error":
            return self.problem(place, str(error["ctx"]["error"]))
        message = error["msg"].replace("Input should be", "expected").replace("expected a valid", "expected a")
        return self.problem(place, f"{_show(value)}: {message}")


def _show(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def load(path: str | Path) -> Document:
    """Reads a YAML (or JSON) file. Raises InputError where it cannot be read."""
    return Document(str(path), read_text(path))


def read_text(path: str | Path) -> str:
    """The text of a file; InputError names the file and says what is wrong with it."""
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError as problem:
        raise InputError(f"{path}: no such file") from problem
    except OSError as problem:
        raise InputError(f"{path}: cannot be read: {problem.strerror}") from problem
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as problem:
        line = data[: problem.start].count(b"\n") + 1
        raise InputError(f"{path}:{line}: not UTF-8 text (byte {data[problem.start]:#04x})") from problem
