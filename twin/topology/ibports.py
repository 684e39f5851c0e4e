"""Port numbers as InfiniBand has them, from 1 up, of a design that may count its ports from 0."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from twin.topology.model import I32, Topology


def ib_numbers(topo: Topology) -> I32:
    """int32[ports]: the first port of a NIC is 1; ports of switches, where one of them is 0, go up by one."""
    ports, nics = topo.ports, topo.nics
    on_switch = ports.switch >= 0
    shift = 1 if (ports.ordinal[on_switch] == 0).any() else 0
    if not len(nics.node):
        return (ports.ordinal + shift).astype(np.int32)
    first = ports.ordinal[nics.port0[ports.nic]]
    return np.where(on_switch, ports.ordinal + shift, ports.ordinal - first + 1).astype(np.int32)


def renumbering(design: Topology) -> Callable[[str], str] | None:
    """From the address of a port as InfiniBand numbers it to that of the design; None where they are the same.

    What the design does not know keeps its address; spare ports of a switch are shifted as its cabled ones are.
    """
    shifts = (ib_numbers(design) - design.ports.ordinal).tolist()
    if not any(shifts):
        return None
    shift = {port.rpartition("/")[0]: by for port, by in zip(design.port_names, shifts, strict=True)}

    def name(port: str) -> str:
        owner, _, number = port.rpartition("/p")
        return f"{owner}/p{int(number) - shift.get(owner, 0)}" if number.isdecimal() else port

    return name
