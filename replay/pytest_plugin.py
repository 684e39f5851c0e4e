"""For pytest: the fixture `drill`, and drill files (`*.drill.yaml`) as tests. Imports wait until one is used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from replay.drills.suite import FluentDrill

SUFFIX = ".drill.yaml"


@pytest.fixture
def drill() -> Callable[..., FluentDrill]:
    """`drill(PRESET, **sizes)`: a simulated fabric to break. See replay.drills.suite."""
    from replay.drills.suite import FluentDrill

    return FluentDrill


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Drill files beside other tests are tests."""
    if file_path.name.endswith(SUFFIX):
        return DrillFile.from_parent(parent, path=file_path)
    return None


class DrillFile(pytest.File):
    def collect(self) -> Iterator[DrillItem]:
        yield DrillItem.from_parent(self, name=self.path.name.removesuffix(SUFFIX))


class DrillItem(pytest.Item):
    """One drill file, run as `fabrictwin drill run` does."""

    def runtest(self) -> None:
        from replay.drills.file import load_drill
        from replay.drills.runner import run_drill
        from replay.drills.suite import DrillFailed

        result = run_drill(load_drill(self.path))
        if not result.passed:
            raise DrillFailed(f"{result.to_text()}\nopen it in the screen: fabrictwin demo --scenario {self.path}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str:
        """A failed drill, or a mistake in its file, needs no traceback."""
        from replay.drills.suite import DrillFailed
        from twin.errors import FabrictwinError

        if isinstance(excinfo.value, DrillFailed | FabrictwinError):
            return str(excinfo.value)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"drill: {self.name}"
