"""What the screen remembers from one time to the next: its colours and its view. Losing it costs nobody anything,
so whatever goes wrong here is silent."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import msgspec
from platformdirs import user_state_path

from tui.colours import COLOURS
from tui.settings import VIEWS


class Remembered(msgspec.Struct, frozen=True):
    """Empty where nothing is known."""

    theme: str = ""
    view: str = ""


def remembered_path() -> Path:
    return user_state_path("fabrictwin", appauthor=False) / "remembered.json"


def recall(path: Path) -> Remembered:
    """What was remembered; what is not known any more, by another version, is forgotten."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Remembered)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return Remembered()
    return Remembered(found.theme if found.theme in COLOURS else "", found.view if found.view in VIEWS else "")


def remember(path: Path, what: Remembered) -> None:
    """Writes it whole or not at all: into a file beside, which then takes the place of the old one."""
    import tempfile

    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        number, beside = tempfile.mkstemp(dir=path.parent, prefix=".remembered-")
        try:
            with os.fdopen(number, "wb") as file:
                file.write(msgspec.json.encode(what))
            Path(beside).replace(path)
        except OSError:
            Path(beside).unlink(missing_ok=True)
