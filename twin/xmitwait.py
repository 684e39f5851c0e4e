"""InfiniBand's PortXmitWait as bandwidth that was lost, by generation of the switch.

lost bytes = increase x (tick + 1) x lanes (ibdiagnet user manual, congestion assessment). Quantum to Quantum-3 count
ticks of 8 bytes of the whole port (tick 7, lanes 1), SwitchIB generations 32 bytes of each lane (tick 31, 4 lanes of
a 4X port). What an adapter counts is not published.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from twin.catalog import hardware
from twin.topology.model import Topology

F64 = npt.NDArray[np.float64]

_SERIES = 5  # letters of a model's name that tell its series: an mqm9790 counts as an mqm9700 does


def bytes_a_tick(topo: Topology) -> F64:
    """float64[ports]: bytes that could have been sent in one tick; NaN for adapters and unknown switches."""
    if not len(topo.switches.name):
        return np.full(len(topo.ports.switch), np.nan)
    known: dict[str, float] = {m: model_bytes_a_tick(m) for m in set(topo.switches.model)}
    switch = np.array([*(known[m] for m in topo.switches.model), np.nan])
    return switch[topo.ports.switch]


def model_bytes_a_tick(model: str) -> float:
    """The same for one model of switch."""
    switches = hardware()["switch"]
    near = [key for key in switches if model and key[:_SERIES] == model.lower()[:_SERIES]]
    entry = switches.get(model) or (switches[near[0]] if near else {})
    return float(entry.get("xmit_wait_tick_bytes", "nan"))


def infiniband(topo: Topology) -> npt.NDArray[np.bool_]:
    """bool[ports]: ports of InfiniBand switches, and the adapters' ports that lead to one."""
    mine = ~np.isnan(bytes_a_tick(topo))
    peer = topo.ports.peer
    return mine | ((peer >= 0) & mine[peer])
