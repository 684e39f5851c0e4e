"""`perfquery`: the counters of single ports, in as many sections as ports and kinds of counters were asked for."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from twin.ibtools.dump import DumpError, Warnings, numbered_lines, readable, shown

NOT_COUNTERS = frozenset({"PortSelect", "CounterSelect", "CounterSelect2"})
EXTENDED_ERRORS = 2  # of CapMask2: the extended block holds error counters and PortXmitWait as well, in 64 bits


@dataclass(slots=True)
class Section:
    """One block of one port. `kind` is `Port`, `Port extended`, `PortRcvErrorDetails`, … as printed."""

    kind: str
    lid: int
    port: int
    cap_mask: int | None
    cap_mask2: int | None
    counters: dict[str, int] = field(default_factory=dict)

    @property
    def wide_errors(self) -> bool:
        """Whether error counters of this section have 64 bits, and do not stop at 255 or 65,535."""
        return self.kind == "Port extended" and bool((self.cap_mask2 or 0) & EXTENDED_ERRORS)


@dataclass(slots=True)
class PerfQuery:
    sections: list[Section] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


# # Port extended counters: Lid 1719 port 1 (CapMask: 0x5300 CapMask2: 0x0000002)
_HEADING = re.compile(
    r"# (?P<kind>[\w ]{1,64}) counters: Lid (?P<lid>\d{1,5}) port (?P<port>\d{1,3})"
    r"(?: \(CapMask: 0x(?P<mask>[\da-fA-F]{1,8})(?: CapMask2: 0x(?P<mask2>[\da-fA-F]{1,8}))?\))?",
    re.ASCII,
)
# PortXmitData:....................36298026860928
_COUNTER = re.compile(r"(?P<name>\w{1,64}):\.*(?P<value>0x[\da-fA-F]{1,16}|\d{1,20})", re.ASCII)


def parse(dump: str | bytes) -> PerfQuery:
    """Read the output of `perfquery`, whichever counters and ports it was asked for."""
    lines = numbered_lines(dump, "perfquery")
    warnings = Warnings()
    report = PerfQuery()
    for number, line in readable(lines, warnings):
        if heading := _HEADING.fullmatch(line):
            report.sections.append(_section(heading))
        elif not (counter := _COUNTER.fullmatch(line)):
            warnings.add(number, f"not understood: {shown(line)}")
        elif not report.sections:
            warnings.add(number, f"a counter before any heading: {shown(line)}")
        elif counter["name"] not in NOT_COUNTERS:
            report.sections[-1].counters[counter["name"]] = _number(counter["value"])
    if not report.sections:
        raise DumpError(1, f"expected a heading of perfquery, found {shown(lines[0][1])}")
    report.warnings = warnings.done()
    return report


def _section(heading: re.Match[str]) -> Section:
    mask, mask2 = (int(digits, 16) if digits else None for digits in heading.group("mask", "mask2"))
    return Section(heading["kind"], int(heading["lid"]), int(heading["port"]), mask, mask2)


def _number(digits: str) -> int:
    return int(digits, 16) if digits.startswith("0x") else int(digits)
