"""How an incident is told in a few words: its state, who pays, how long."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.text import NS, age, plural
from tui.theme import GLYPH, STYLE

if TYPE_CHECKING:
    from twin.incident import Incident


def affected(incident: Incident) -> str:
    """`512 GPUs`, else the hosts; nothing where nobody pays."""
    if incident.affected.gpus:
        return plural(incident.affected.gpus, "GPU")
    return plural(incident.affected.nodes, "host") if incident.affected.nodes else "–"


def lasted(incident: Incident, now: int) -> str:
    """How long it is open, or was."""
    end = incident.resolved if incident.resolved is not None else now
    return age((end - incident.started) / NS)


def state_word(incident: Incident) -> tuple[str, str, str]:
    """(glyph, word, style): severity while it is open and nobody takes care of it, else what became of it."""
    if incident.superseded_by is not None:
        return "→", "merged", "dim"
    if not incident.is_open:
        return GLYPH["ok"], "resolved", "dim"
    if incident.is_muted:
        return GLYPH["muted"], "work" if incident.maintenance is not None else "silenced", "dim"
    word = "ending" if incident.state == "recovering" else "acked" if incident.acknowledged else incident.severity
    return GLYPH[incident.severity], word, STYLE[incident.severity]
