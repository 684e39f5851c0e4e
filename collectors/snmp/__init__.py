"""Switches by SNMP: one collector a switch, reading IF-MIB (RFC 2863).

agent.py asks and says what failed, interfaces.py knows what the cells mean, table.py which interface is which port,
collector.py puts them together.
"""

from __future__ import annotations

import re
from importlib import import_module
from ipaddress import ip_address
from typing import TYPE_CHECKING

import numpy as np

from collectors.base import Collector
from collectors.portnames import PortNames
from collectors.snmp.agent import Agent, Login
from collectors.snmp.collector import SnmpCollector
from twin.errors import InputError, MissingLibrary
from twin.topology.model import Topology

if TYPE_CHECKING:
    from twin.site import Site
    from twin.sitespecs import Secret, SnmpSpec

PORT = 161
SHORTEST_KEY = 8  # characters of a password of version 3: RFC 3414, 11.2
_TARGET = re.compile(r"(?:\[([0-9a-fA-F:.%\w]+)\]|([^:\[\]/\s]+))(?::([0-9]{1,5}))?")


def build(spec: SnmpSpec, site: Site) -> list[Collector]:
    """A collector for each target. Raises InputError naming every mistake, MissingLibrary without gufo-snmp."""
    try:
        import_module("gufo.snmp.aio")
    except ImportError as problem:
        raise MissingLibrary("gufo-snmp", "snmp", "to read switches by SNMP") from problem
    names, problems = PortNames(site.topology, spec.ports), []
    places = {}
    for device, target in spec.targets.items():
        if not names.has(device):
            problems.append(f"collectors: snmp: {device!r} is no switch in the wiring of {site.topology.name}")
        try:
            places[device] = parse_target(target)
        except InputError as problem:
            problems.append(f"collectors: snmp: {device}: {problem}")
    login = _login(spec, site, problems)
    if problems:
        raise InputError(problems)
    return [
        SnmpCollector(
            device, Agent(host, port, login, patience=spec.deadline), names, cabled_ports(site.topology, device),
            interval=spec.every, deadline=spec.deadline,
        )
        for device, (host, port) in places.items()
    ]  # fmt: skip


def parse_target(text: str) -> tuple[str, int]:
    """Host and port of `leaf-1`, `10.0.0.1:1161`, `::1` or `[::1]:1161`. Raises InputError."""
    try:
        return str(ip_address(text)), PORT
    except ValueError:
        pass
    match = _TARGET.fullmatch(text)
    if match is None or not 0 < int(match[3] or PORT) < 65536:
        raise InputError(f"{text!r}: expected host or host:port")
    return match[1] or match[2], int(match[3] or PORT)


def cabled_ports(topology: Topology, device: str) -> frozenset[str]:
    """The addresses of one device that have a cable."""
    rows = np.flatnonzero(topology.ports.link >= 0).tolist()
    return frozenset(name for row in rows if (name := topology.port_names[row]).startswith(f"{device}/"))


def _login(spec: SnmpSpec, site: Site, problems: list[str]) -> Login:
    """Who asks. What is wrong with it is added to `problems`."""

    def read(secret: Secret, what: str, shortest: int = 1) -> str:
        try:
            found = secret.value(site.directory, f"collectors: snmp: {what}")
        except InputError as problem:
            problems.extend(problem.problems)
            return ""
        if len(found) < shortest:
            problems.append(f"collectors: snmp: {what} is too short: expected at least {shortest} characters")
        return found

    if spec.version == "3":
        auth, priv = (
            (key.protocol, read(key.key, f"the key of {what}", SHORTEST_KEY)) if key is not None else None
            for what, key in (("auth", spec.auth), ("priv", spec.priv))
        )
        return Login(user=spec.user, auth=auth, priv=priv)
    if spec.community is None:
        problems.append("collectors: snmp: version 2c needs a community, {env: VARIABLE} or {file: PATH}")
        return Login()
    return Login(community=read(spec.community, "the community"))
