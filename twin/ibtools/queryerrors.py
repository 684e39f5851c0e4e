"""`ibqueryerrors --counters` (data counters of every port) and plain `ibqueryerrors` (error counters above zero).

Read both with care:

- Plain output lists only counters above their threshold, by default zero. So zero is known for the ports of all
  nodes checked, unless a query failed: that one is named on standard error only (see `complaints`), and its node
  counts as checked all the same.
- Without a subnet manager the tool prints nothing and still exits with 0. `--skip-sl` does without one.
- Error rows name an adapter's port by port GUID, the rows of `--counters` by node GUID: `by_node` joins them.
- With `--details` infiniband-diags 44 prints the details of receive errors under the names of discards, and the
  other way round: ask `perfquery` for those.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from twin.ibtools.dump import DumpError, Warnings, guid, numbered_lines, readable, shown

Counters = dict[tuple[str, int], dict[str, int]]


@dataclass(slots=True)
class QueryErrors:
    """What one run found. The sums are None where the output ends before its summary."""

    counters: Counters = field(default_factory=dict)  # by GUID (as printed) and port; data in 4-byte words
    descriptions: dict[str, str] = field(default_factory=dict)  # by the same GUIDs
    nodes_checked: int | None = None
    bad_nodes: int | None = None
    ports_checked: int | None = None
    bad_ports: int | None = None
    failed_queries: int = 0
    thresholds: dict[str, int] = field(default_factory=dict)  # a counter up to its threshold is not listed
    suppressed: tuple[str, ...] = ()
    warnings: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether the tool came to its end, so that a port not listed has nothing to report."""
        return self.nodes_checked is not None

    def by_node(self, port_guids: Mapping[str, str]) -> Counters:
        """The counters by node GUID and port, given `Discovery.port_guids`."""
        return {(port_guids.get(guid, guid), port): values for (guid, port), values in self.counters.items()}


# Data Counters for 0x2c9… "leaf-01"        Errors for 0x2c9… "leaf-01"        Errors for "node-02 mlx5_0"
_HEADING = re.compile(r'(?:Data Counters|Errors) for (?:0x[\da-fA-F]{1,16} )?"(?P<description>.*)"', re.ASCII)

#    GUID 0x2c9… port 5: [LinkDownedCounter == 3] [PortXmitData == 1656 (6.469KB)]
_ROW = re.compile(r"\s+GUID 0x(?P<guid>[\da-fA-F]{1,16}) port (?P<port>\d{1,3}|ALL):(?P<values>.*)", re.ASCII)
_VALUE = re.compile(r"\[(?P<name>\w{1,64}) == (?P<value>\d{1,20})(?: \([^()\]]{1,32}\))?\]", re.ASCII)

_NODES = re.compile(r"## Summary: (\d{1,9}) nodes checked, (\d{1,9}) bad nodes found", re.ASCII)
_PORTS = re.compile(r"##\s+(\d{1,9}) ports checked, (\d{1,9}) ports have errors", re.ASCII)
_FAILED = re.compile(r"##\s+(\d{1,9}) PMA query failures", re.ASCII)
_THRESHOLD = re.compile(r"\[(\w{1,64}) = (\d{1,20})\]", re.ASCII)


def parse(dump: str | bytes) -> QueryErrors:
    """Read either output; without a single row it must at least have its summary."""
    lines = numbered_lines(dump, "ibqueryerrors")
    warnings = Warnings()
    report = QueryErrors()
    description = ""
    for number, line in readable(lines, warnings):
        if row := _ROW.fullmatch(line):
            if not _counted(report, row, description):
                warnings.add(number, f"a counter cut short: {shown(line[-60:])}")
        elif heading := _HEADING.fullmatch(line):
            description = heading["description"]
        elif line.startswith("## "):
            _summed(report, line)
        elif not line.startswith("       Link info:"):  # of option -r
            warnings.add(number, f"not understood: {shown(line)}")
    if not report.complete:
        if not report.counters:
            raise DumpError(1, f"expected counters or a summary of ibqueryerrors, found {shown(lines[0][1])}")
        warnings.add(lines[-1][0], "no summary; is the output cut short?")
    report.warnings = warnings.done()
    return report


def _counted(report: QueryErrors, row: re.Match[str], description: str) -> bool:
    """Keep the counters of a row; whether all of them could be read."""
    if row["port"] == "ALL":  # sums over a switch, whose ports have rows of their own
        return True
    place = (guid(row["guid"]), int(row["port"]))
    read = _VALUE.findall(row["values"])
    counters = report.counters.setdefault(place, {})
    for name, value in read:
        counters.setdefault(name, int(value))
    report.descriptions[place[0]] = description
    return len(read) == row["values"].count("[")


def _summed(report: QueryErrors, line: str) -> None:
    if nodes := _NODES.match(line):
        report.nodes_checked, report.bad_nodes = int(nodes[1]), int(nodes[2])
    elif ports := _PORTS.match(line):
        report.ports_checked, report.bad_ports = int(ports[1]), int(ports[2])
    elif failed := _FAILED.match(line):
        report.failed_queries = int(failed[1])
    elif line.startswith("## Thresholds:"):
        report.thresholds = {name: int(value) for name, value in _THRESHOLD.findall(line)}
    elif line.startswith("## Suppressed:"):
        report.suppressed = tuple(line.removeprefix("## Suppressed:").split())
