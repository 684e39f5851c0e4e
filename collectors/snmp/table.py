"""Which interface of an agent is which port, for as long as its interface table stays the same.

Indices are not stable: a reboot or a new card may give them to other interfaces (RFC 2863, 3.1.5). So every reading
is followed by a look at what would have changed with them, and is thrown away where something did.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from collectors.base import CollectorError
from collectors.portnames import PortNames
from collectors.snmp.agent import TEXTS, Agent, Cells, Value
from collectors.snmp.interfaces import ALIAS, DESCR, NAME, text, whole

UPTIME, LAST_CHANGE, COUNT = "1.3.6.1.2.1.1.3.0", "1.3.6.1.2.1.31.1.5.0", "1.3.6.1.2.1.2.1.0"
TICKS = 100  # a second, of sysUpTime
DRIFT = 0.9  # an agent's clock runs at least this fast
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class State:
    """What an agent says of itself and its table. taken: seconds of some clock. None where it says nothing."""

    taken: float
    uptime: int | None  # sysUpTime: ticks since the agent started
    changed: int | None  # ifTableLastChange: sysUpTime when an interface came or went
    count: int | None  # ifNumber

    @classmethod
    async def ask(cls, agent: Agent, now: float) -> State:
        said: Mapping[str, Value] = await agent.get((UPTIME, LAST_CHANGE, COUNT))
        return cls(now, whole(said.get(UPTIME)), whole(said.get(LAST_CHANGE)), whole(said.get(COUNT)))

    def restarted_since(self, before: State) -> bool:
        """True where the agent has started anew: its uptime fell, or is shorter than the time that has passed."""
        if self.uptime is None or before.uptime is None:
            return False
        return self.uptime < before.uptime or self.uptime < (self.taken - before.taken) * TICKS * DRIFT


@dataclass(frozen=True, slots=True)
class Table:
    """The interfaces that are ports. index: address -> index of the interface. warnings: what could not be placed."""

    index: Mapping[str, str]
    column: str  # the naming column that told which is which
    cells: Cells  # and its cells
    state: State  # from before they were read
    rows: int  # interfaces up to the last one that is a port
    last: str  # index of that one
    warnings: tuple[str, ...] = ()

    async def holds(self, agent: Agent, state: State) -> bool:
        """True where nothing has moved between reading the names and `state`."""
        if state.restarted_since(self.state) or (state.changed, state.count) != (
            self.state.changed,
            self.state.count,
        ):
            return False
        if state.changed is not None:
            return True
        cells = await agent.walk(self.column, len(self.cells), most=TEXTS)  # it does not tell changes: look
        return cells == self.cells


async def learn(agent: Agent, device: str, names: PortNames, cabled: frozenset[str], now: float) -> Table:
    """Reads the names and places them: by ifName, or where that places nothing by ifDescr, then by ifAlias.

    cabled: the addresses of this device that ought to be found. Raises CollectorError where there is no interface,
    or none that is a port.
    """
    state = await State.ask(agent, now)
    first: list[str] = []
    for column in (NAME, DESCR, ALIAS):
        cells = await agent.walk(column, state.count or 0, most=TEXTS)
        named = {index: name for index, cell in cells.items() if (name := text(cell))}
        first = first or list(named.values())
        placed = names.place(device, named.values())
        if placed:
            return _table(agent, device, column, cells, named, placed, cabled, state)
    if not first:
        raise CollectorError(f"{agent.where} shows no interfaces: is IF-MIB in the view of this user or community?")
    raise CollectorError(
        f"{agent.where}: none of its interfaces ({_some(first)}) is a port of {device}; name them in `ports`"
    )


def _table(
    agent: Agent, device: str, column: str, cells: Cells, named: Mapping[str, str], placed: Mapping[str, str],
    cabled: frozenset[str], state: State,
) -> Table:  # fmt: skip
    index: dict[str, str] = {}
    for i, name in named.items():  # of two interfaces with one name neither can be told
        if (address := placed.get(name)) is not None:
            index[address] = "" if address in index else i
    index = {address: i for address, i in index.items() if i}
    wanted = set(index.values())
    order = list(cells)
    rows = max((n for n, i in enumerate(order, start=1) if i in wanted), default=0)
    if not rows:
        raise CollectorError(f"{agent.where}: all interfaces that could be ports of {device} share their names")
    missing = sorted(cabled - set(index))
    warnings = []
    if missing:
        warnings.append(
            f"{agent.where}: {len(missing)} cabled ports of {device} are not among its interfaces and so unknown: "
            + _some(missing)
        )
    return Table(index, column, cells, state, rows, order[rows - 1], tuple(warnings))


def _some(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
