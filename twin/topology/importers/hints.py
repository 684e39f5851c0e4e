"""What names give away: tier, plane, rail and port numbers. Pure functions of one name."""

from __future__ import annotations

import re

LEAF, SPINE, CORE = range(3)

_TIERS = (
    (re.compile(r"super[-_]?spine|(?<![a-z])(core|ss)(?![a-z])", re.I), CORE),
    (re.compile(r"leaf|(?<![a-z])tor(?![a-z])", re.I), LEAF),
    (re.compile(r"spine", re.I), SPINE),
)
_SWITCH = re.compile(r"(?<![a-z])(sw|switch|mqm\d+|qm\d{4}|sn\d{4})(?![a-z])|(?<![a-z])sw\d", re.I)
_HOST = re.compile(r"(?<![a-z])(node|worker|host|server|compute|gpu|dgx|hgx|cn)(?![a-z])|-[nh]\d+$|^[nh]\d+$", re.I)
_RUNS_SWITCH = re.compile(r"cumulus|sonic|arista|mlnx-?os|nvos|nv-?linux|onyx|nx-?os|junos|switch|dnos|eos\b", re.I)
_RUNS_HOST = re.compile(r"ubuntu|debian|red ?hat|rhel|centos|rocky|alma|suse|dgx os|flatcar|windows", re.I)
_SWITCH_PORT = re.compile(r"swp\d+(s\d+)?|Ethernet\d.*|e(t|th)?-?\d+[/-]\d.*", re.I)
_OUT_OF_BAND = re.compile(r"(?<![a-z])(oob|mgmt|mgt|management|bmc|ipmi|ilo|idrac)(?![a-z])", re.I)
_PLANE_WORD = re.compile(r"plane[-_]?([a-z]|\d+)(?![a-z0-9])", re.I)
_PLANE_TOKEN = re.compile(r"(?<![a-z0-9])p(\d{1,2})(?![a-z0-9])", re.I)
_PLANE_LETTER = re.compile(r"([A-H])[-_.].*[a-z].*|.*[a-z].*[-_.]([A-H])", re.I)
_RACK = re.compile(r"(?:(?<![a-z])su\d+[-_])?(?<![a-z])rack[-_]?\d+", re.I)

_SPLIT = re.compile(r"swp(\d+)s(\d+)", re.I)
_NUMBER = re.compile(r"\d+")
_HOST_PORTS = (  # nic and port by name; what has no port group has one port a NIC
    re.compile(r"rail(?P<nic>\d+)[-_]?p(?P<port>\d+)", re.I),
    re.compile(r"(?:[a-z]+[-_])?p(?P<port>\d+)[-_]r(?P<nic>\d+)", re.I),
    re.compile(r"(?:[a-z]+[-_])?r(?P<nic>\d+)[-_]p(?P<port>\d+)", re.I),
    re.compile(r"(?!e[nt])[a-z]+(?P<nic>\d+)[-_/]?p(?P<port>\d+)", re.I),
    re.compile(r"(?:rail|mlx5_|nic|ib|HCA-|rdma|gpu)(?P<nic>\d+)", re.I),
)
_RAIL_PORT = re.compile(r"rail|(^|[-_])r\d+|^gpu", re.I)
_PCI_PORT = re.compile(r"(?P<base>e[nt]\w*?s\d+?)(?:f(?P<f>\d+))?(?:np(?P<np>\d+))?", re.I)
_TAIL_PORT = re.compile(r"(?P<base>.+?)(?:np|[._-]?p)(?P<port>\d+)", re.I)
MAX_NIC, MAX_PORTS = 999, 64


def tier_of(name: str) -> int | None:
    """The tier a switch's name says: leaf, tor, spine, super-spine, core."""
    return next((tier for pattern, tier in _TIERS if pattern.search(name)), None)


def says_switch(name: str) -> bool:
    return tier_of(name) is not None or bool(_SWITCH.search(name))


def says_host(name: str) -> bool:
    return bool(_HOST.search(name))


def runs(description: str) -> str | None:
    """`switch` or `host` where the name of what it runs says so."""
    if _RUNS_SWITCH.search(description):
        return "switch"
    return "host" if _RUNS_HOST.search(description) else None


def is_switch_port(interface: str) -> bool:
    return bool(_SWITCH_PORT.fullmatch(interface))


def out_of_band(name: str) -> bool:
    """A device or interface of the management network."""
    return bool(_OUT_OF_BAND.search(name))


def plane_schemes(name: str) -> dict[str, str]:
    """The planes a switch name may mean, by way of reading it: what is sought, to the plane's name."""
    found: dict[str, str] = {}
    if match := _PLANE_WORD.search(name):
        found["the word plane"] = match[1].upper() if match[1].isalpha() else f"p{int(match[1])}"
    if match := _PLANE_TOKEN.search(name):
        found["the part pN"] = f"p{int(match[1])}"
    if match := _PLANE_LETTER.fullmatch(name):
        found["the single letter"] = (match[1] or match[2]).upper()
    return found


def rack_of(name: str) -> str | None:
    match = _RACK.search(name)
    return match[0] if match else None


def is_rail(interface: str) -> bool:
    """The name says that the interface belongs to a rail, so to GPU traffic."""
    return bool(_RAIL_PORT.search(interface))


def host_port(interface: str) -> tuple[int, int | None] | None:
    """NIC and port numbers as the name gives them: `rail3p1` is (3, 1), `mlx5_4` is (4, None)."""
    for pattern in _HOST_PORTS:
        if match := pattern.fullmatch(interface):
            groups = match.groupdict()
            nic, port = int(groups["nic"]), groups.get("port")
            if nic > MAX_NIC or (port is not None and int(port) >= MAX_PORTS):
                return None
            return nic, None if port is None else int(port)
    return None


def adapter_of(interface: str) -> tuple[str, int]:
    """For names that number no NIC: what its ports share, and the port. `enp26s0f1np1` is (`enp26s0`, 1)."""
    if (match := _PCI_PORT.fullmatch(interface)) and int(match["f"] or match["np"] or 0) < MAX_PORTS:
        return match["base"], int(match["f"] or match["np"] or 0)
    if (match := _TAIL_PORT.fullmatch(interface)) and int(match["port"]) < MAX_PORTS:
        return match["base"], int(match["port"])
    return interface, 0


def split_port(interface: str) -> tuple[int, int] | None:
    """A port and its part: `swp3s1` is (3, 1)."""
    match = _SPLIT.fullmatch(interface)
    return (int(match[1]), int(match[2])) if match else None


def numbers(interface: str) -> tuple[int, ...]:
    """All numbers in a name, in order."""
    return tuple(int(n) for n in _NUMBER.findall(interface)[:6] if len(n) < 7)
