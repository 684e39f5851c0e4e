"""What a user is told when something cannot be done: what, where, what was expected, what to do."""

from __future__ import annotations

from collections.abc import Sequence


class FabrictwinError(Exception):
    """The root of every error that fabrictwin raises on purpose. Its text is one line for a person."""


class InputError(FabrictwinError):
    """Input that cannot be used. `problems` holds one line each; all of them are reported at once."""

    def __init__(self, problems: str | Sequence[str]) -> None:
        self.problems: list[str] = [problems] if isinstance(problems, str) else list(problems)
        super().__init__("\n".join(self.problems))


class MissingTool(FabrictwinError):
    """A program that a source needs is not installed."""

    def __init__(self, tool: str, package: str, purpose: str) -> None:
        self.tool = tool
        super().__init__(f"{tool} not found: it is needed {purpose}; install the package {package}")


class MissingLibrary(FabrictwinError):
    """An optional library that a source needs is not installed. extra: the optional part that brings it."""

    def __init__(self, library: str, extra: str, purpose: str) -> None:
        self.library = library
        super().__init__(f"{library} not installed: it is needed {purpose}; pip install 'fabrictwin[{extra}]'")
