"""What the views of an incident share: the keys with which an operator takes care of it, or mutes it for a while."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from tui.screens.base import ViewScreen

if TYPE_CHECKING:
    from twin.incident import Incident


class HandlingScreen(ViewScreen):
    """The keys are there where the session watches something now; a recording is past."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "acknowledge", "ack", tooltip="acknowledge: you take care of the incident, for 8 h"),
        Binding("s", "silence", "silence", tooltip="silence what has this cause for 30 min"),
    ]

    def handled(self) -> Incident | None:
        """The incident that the keys are about."""
        raise NotImplementedError

    def entity(self) -> str:
        incident = self.handled()
        return incident.cause if incident is not None else ""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("acknowledge", "silence"):
            return self.fabric.session.takes_words
        return super().check_action(action, parameters)

    def action_acknowledge(self) -> None:
        self.fabric.acknowledge(self.handled())

    def action_silence(self) -> None:
        self.fabric.silence(self.handled())
