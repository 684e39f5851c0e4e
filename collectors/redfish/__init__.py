"""Power of nodes and power shelves from their BMCs by Redfish (DMTF DSP0266), one collector a BMC."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from collectors.base import Collector
from collectors.redfish.client import Bmc, trust
from collectors.redfish.collector import RedfishCollector
from collectors.redfish.places import Target
from twin.errors import InputError

if TYPE_CHECKING:
    from twin.site import Site
    from twin.sitespecs import RedfishSpec

__all__ = ["RedfishCollector", "build"]

MOST_PAGE_S = 8.0  # for one page; some take seconds


def build(spec: RedfishSpec, site: Site) -> list[Collector]:
    """A collector for each target, apart from each other. Raises InputError naming every mistake."""
    targets = {name: Target.of(site.topology, name) for name in spec.targets}
    problems = [
        f"collectors: redfish: targets: {name!r} is no node, rack or feed of {site.topology.name}"
        for name, target in targets.items()
        if target is None
    ]
    problems += [
        f"collectors: redfish: targets: {name}: {url!r}: expected the address of a BMC, such as https://10.0.0.1"
        for name, url in spec.targets.items()
        if not _is_service(url) and "@" not in url
    ]
    problems += [
        f"collectors: redfish: targets: {name}: a user is not part of the address; give username and password"
        for name, url in spec.targets.items()
        if "@" in url
    ]
    if (spec.username is None) != (spec.password is None):
        problems.append("collectors: redfish: username and password belong together")
    if problems:
        raise InputError(problems)
    password = "" if spec.password is None else spec.password.value(site.directory, "collectors: redfish: password")
    trusted = trust(spec.tls, site.directory)
    return [
        RedfishCollector(
            Bmc(
                name, spec.targets[name], username=spec.username, password=password, trusted=trusted,
                server_name=None if spec.tls is None else spec.tls.server_name,
                timeout=min(MOST_PAGE_S, spec.deadline * 0.3),
            ),
            target, interval=spec.every, deadline=spec.deadline,
        )
        for name, target in targets.items()
        if target is not None
    ]  # fmt: skip


def _is_service(url: str) -> bool:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.path in ("", "/") and not parts.query
