"""What `watch`, `check` and `record` share: from the argument SITE to a live pipeline."""

from __future__ import annotations

from pathlib import Path

from replay.live import Live
from twin.errors import InputError


def open_live(site: str | None, record: Path | None = None) -> Live:
    """The pipeline of a site file, or of this host. Raises InputError or MissingTool where it cannot run."""
    if site is None:
        from collectors.build import build_own

        topology, collectors = build_own()
        if not collectors:
            raise InputError("this host has no network interface to watch; name a site file")
        return Live("this host", topology, collectors, record=record)
    from twin.site import load_site

    return Live.of(load_site(site), record)
