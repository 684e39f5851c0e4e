"""What `watch`, `check` and `record` share: from the argument SITE to a live pipeline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from twin.errors import InputError

if TYPE_CHECKING:
    from replay.limits import Keeping
    from replay.live import Live


def reasons(live: Live) -> dict[str, str]:
    """Source -> why it fails, or the first thing that cannot be had of it; those of which there is nothing to say are
    left out."""
    told = {h.name: h.last_error if h.ok is False else next(iter(h.warnings), None) for h in live.health()}
    return {name: text for name, text in told.items() if text}


def about(live: Live, site: str | None) -> tuple[str, ...]:
    """What is watched, in words, where no site says it."""
    if site is not None:
        return ()
    from collectors.doctor.here import here

    return here(live.twin.topology)


def open_live(site: str | None, record: Path | None = None, keeping: Keeping | None = None) -> Live:
    """The pipeline of a site file, or of this host. Raises InputError or MissingTool where it cannot run."""
    from replay.live import Live

    if site is None:
        from collectors.build import build_own

        topology, collectors = build_own()
        if not collectors:
            from collectors.doctor.here import here

            raise InputError(f"{here(topology)[0]}: no network interface either; name a site file")
        return Live("this host", topology, collectors, record=record, keeping=keeping)
    from twin.site import load_site

    return Live.of(load_site(site), record, keeping)
