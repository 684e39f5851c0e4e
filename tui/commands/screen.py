"""The screen as a person wants it: with what they have set, and as they left it the last time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tui.session import Session


def open_screen(session: Session, ascii_only: bool) -> None:
    """Shows a session until somebody leaves. Settings that are wrong are told on the screen, and hold nobody up."""
    from tui.app import FabricApp
    from tui.remembered import Remembered, recall, remember, remembered_path
    from tui.settings import read_settings, settings_path

    path, memory = settings_path(), remembered_path()
    settings, problems = read_settings(path)
    last = recall(memory)
    app = FabricApp(
        session,
        ascii=ascii_only or None,
        colours=settings.theme or last.theme or "dark",
        view=settings.view or last.view or "overview",
        keys=settings.keys,
        warning=problems[0].replace(str(path), path.name) if problems else "",
    )
    app.run()
    if app.current_mode != "starting":
        remember(memory, Remembered(app.colours, app.current_mode))
