"""`iblinkinfo -l`: a line a port, with its state, its speed and its far end.

Adapters' ports go by port GUID here (see `discovery`). A port that is down has no width and no speed, whatever a
tool prints for it: what its registers hold then is invalid, and half the speed is another fault than none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from twin.ibtools import speeds
from twin.ibtools.dump import DumpError, Warnings, guid, numbered_lines, readable, shown

PADDED = 30  # iblinkinfo right-aligns the description to this many characters
NO_LINK = frozenset({"Sleep", "Polling", "Disabled", "PortConfigurationTraining"})  # physical states


@dataclass(frozen=True, slots=True)
class PortInfo:
    """One port. `speed` is a name like `HDR`; what is None was not said, or means nothing on a port that is down.

    `could_be_width` and `could_be_speed` are set where both ends support more than they agreed on.
    """

    guid: str
    port: int
    lid: int
    description: str
    state: str
    physical: str
    width: str | None = None
    speed: str | None = None
    peer_guid: str | None = None
    peer_port: int | None = None
    peer_lid: int | None = None
    peer_description: str | None = None
    could_be_width: str | None = None
    could_be_speed: str | None = None

    @property
    def down(self) -> bool:
        return _is_down(self.state, self.physical)

    @property
    def active(self) -> bool:
        """Carries traffic; a port that is neither down nor active waits for the subnet manager."""
        return self.state == "Active" and not self.down


@dataclass(slots=True)
class LinkInfo:
    ports: list[PortInfo] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


# 0xabc "   leaf-01"      1    5[  ] ==( 4X        53.125 Gbps Active/  LinkUp)==>  FAR
# `[  ]` may hold the number on a chassis' panel. A speed may be `10.0 Gbps (FDR10)`.
_LINE = re.compile(
    r'0x(?P<guid>[\da-fA-F]{1,16}) "(?P<description>.*)"\s+(?P<lid>\d{1,5})\s+(?P<port>\d{1,3})\[[ \d]{0,4}\] '
    r"==\((?P<link>.*?)\)==>(?P<far>.*)",
    re.ASCII,
)

# 0xdef      3    1[  ] "spine-01" (Could be 4X Could be 53.125 Gbps)
_FAR = re.compile(
    r"\s+0x(?P<guid>[\da-fA-F]{1,16})\s+(?P<lid>\d{1,5})\s+(?P<port>\d{1,3})\[[ \d]{0,4}\] "
    r'"(?P<description>.*)" \((?P<hints>.*)\)\s*',
    re.ASCII,
)
_HINT = re.compile(r"Could be (?:(?P<width>\d{1,2}X)|(?P<speed>[\d.]{1,10} Gbps|FDR10))", re.ASCII)


def parse(dump: str | bytes) -> LinkInfo:
    """Read the output of `iblinkinfo -l`."""
    lines = numbered_lines(dump, "iblinkinfo -l")
    warnings = Warnings()
    report = LinkInfo()
    for number, line in readable(lines, warnings):
        match = _LINE.fullmatch(line)
        port = _port(match) if match else None
        if port is None:
            warnings.add(number, f"not understood: {shown(line)}")
        else:
            report.ports.append(port)
    if not report.ports:
        raise DumpError(1, f"expected lines of iblinkinfo -l (with -l), found {shown(lines[0][1])}")
    report.warnings = warnings.done()
    return report


def _port(match: re.Match[str]) -> PortInfo | None:
    left, slash, right = match["link"].partition("/")  # `4X 53.125 Gbps Active` and `LinkUp`
    *rate, state = left.split() or [""]
    physical = right.replace(")", " ").split()[:1]  # with -p, `LinkUp) (HOQ:18 VL_Stall:7`
    if not (slash and state and physical):
        return None
    down = _is_down(state, physical[0])
    far = _FAR.fullmatch(match["far"])
    could_be_width, could_be_speed = _hints(far["hints"]) if far and not down else (None, None)
    return PortInfo(
        guid=guid(match["guid"]),
        port=int(match["port"]),
        lid=int(match["lid"]),
        description=_unpadded(match["description"]),
        state=state,
        physical=physical[0],
        width=speeds.width(rate[0]) if rate and not down else None,
        speed=speeds.speed_of_signalling(" ".join(rate[1:])) if not down else None,
        peer_guid=guid(far["guid"]) if far else None,
        peer_port=int(far["port"]) if far else None,
        peer_lid=int(far["lid"]) if far else None,
        peer_description=far["description"] if far else None,
        could_be_width=could_be_width,
        could_be_speed=could_be_speed,
    )


def _is_down(state: str, physical: str) -> bool:
    return state == "Down" or physical in NO_LINK


def _hints(text: str) -> tuple[str | None, str | None]:
    width = speed = None
    for hint in _HINT.finditer(text):
        if hint["width"]:
            width = speeds.width(hint["width"])
        else:
            speed = speeds.speed_of_signalling(hint["speed"])
    return width, speed


def _unpadded(description: str) -> str:
    """Spaces in front are iblinkinfo's padding; those of the description itself cannot be told apart.

    The padding counts bytes, of which a character may take several: hence "at most".
    """
    return description.lstrip(" ") if len(description) <= PADDED else description
