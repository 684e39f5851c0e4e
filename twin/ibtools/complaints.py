"""What infiniband-diags say on standard error, sorted by what it means for the reading.

They complain and exit with 0. A node that did not answer is then missing from an otherwise normal output, so without
these lines silence would look like a removed node, and a failed query like a clean port.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from twin.ibtools.dump import MAX_LINE, MAX_WARNINGS, shown


@dataclass(frozen=True, slots=True)
class Unreachable:
    """A place that gave no answer: a directed route as port numbers from here (`0,1,5`), or a `Lid 9`."""

    path: str
    reason: str
    attribute: int | None = None


@dataclass(frozen=True, slots=True)
class FailedQuery:
    """Counters that could not be read: of this node (by description and LID) and port, nothing is known."""

    query: str
    description: str
    lid: int | None
    port: int


@dataclass(slots=True)
class Complaints:
    unreachable: list[Unreachable] = field(default_factory=list)
    failed: list[FailedQuery] = field(default_factory=list)
    no_subnet_manager: bool = False  # ibqueryerrors gives up at once then, without a word on standard output
    fatal: str | None = None  # why the tool ended
    other: list[str] = field(default_factory=list)


# query_smp.c:186; umad (DR path slid 0; dlid 0; 0,1,5,3 Attr 0x11:0) bad status 110; Connection timed out
_PATH = r"(?:DR path slid \d+; dlid \d+; )?(?P<path>[\d,]{1,200}|Lid \d{1,5})"
_NO_ANSWER = re.compile(
    rf".*?\bu?mad \({_PATH} Attr 0x(?P<attribute>[\da-f]{{1,4}}):\d+\) bad status (?P<reason>.*)", re.ASCII
)
# ibwarn: [204] mad_rpc: _do_madrpc failed; dport (Lid 9)
_NO_REPLY = re.compile(rf"ibwarn: .*_do_madrpc failed; dport \({_PATH}\)", re.ASCII)
# ibwarn: [204] print_errors: IB_GSI_PORT_COUNTERS query failed on node-05 mlx5_0, Lid 9 port 1
_FAILED = re.compile(
    r"ibwarn: \[\d+\] \w+: (?P<query>\w+) query failed on (?P<description>.*), (?:Lid (?P<lid>\d{1,5})|DR path .*)"
    r" port (?P<port>\d{1,3})",
    re.ASCII,
)
_FATAL = re.compile(r"\w+: iberror: failed: (?P<why>.*)", re.ASCII)


def parse(stderr: str | bytes) -> Complaints:
    """Sort the lines; what fits nowhere is kept in `other`, up to a limit. Nothing to say is no error here."""
    text = stderr.decode("utf-8", "replace") if isinstance(stderr, bytes) else stderr
    complaints = Complaints()
    for line in text.split("\n"):
        if line and not line.isspace():
            _sort(complaints, line.rstrip()[:MAX_LINE])
    return complaints


def _sort(complaints: Complaints, line: str) -> None:
    if failed := _FAILED.fullmatch(line):
        lid = int(failed["lid"]) if failed["lid"] else None
        complaints.failed.append(FailedQuery(failed["query"], failed["description"], lid, int(failed["port"])))
    elif silent := _NO_ANSWER.fullmatch(line):
        place = Unreachable(silent["path"], silent["reason"], int(silent["attribute"], 16))
        complaints.unreachable.append(place)
    elif silent := _NO_REPLY.fullmatch(line):
        complaints.unreachable.append(Unreachable(silent["path"], "no reply"))
    elif line.startswith("Query SA failed"):
        complaints.no_subnet_manager = True
    elif fatal := _FATAL.fullmatch(line):
        complaints.fatal = fatal["why"]
    elif len(complaints.other) < MAX_WARNINGS:
        complaints.other.append(shown(line))
