"""Questions as an operator types them on the screen, and what they are answered with."""

from __future__ import annotations

import numpy as np

from twin.calibration import Calibration, calibrate
from twin.errors import InputError
from twin.snapshot import Snapshot
from twin.topology.model import Topology
from twin.whatif import CLASSES, Answer, Change, Sweep, WhatIf, singles
from twin.whatif.change import is_down, target_of

TRAFFIC = "~"  # the question of where traffic goes
_RECENT = 10.0  # seconds; readings older than this, and than three intervals, are no traffic of now
MOST = 2_000  # parts of a class that are swept on the screen; more take too long to wait for


def question(text: str) -> Change:
    """`plane:B n012` fail, `+n013` is repaired, `A-leaf-03=0.5` goes at half its speed, `<450` limits GPUs, W.

    Raises InputError for a number that is none.
    """
    fail: list[str] = []
    repair: list[str] = []
    degrade: list[tuple[str, float]] = []
    limit: float | None = None
    for word in text.split():
        address, equals, share = word.rpartition("=")
        if word.startswith("<"):
            limit = _number(word, word[1:].removesuffix("W"))
        elif word.startswith("+"):
            repair.append(word[1:])
        elif equals and address:
            degrade.append((address, _number(word, share)))
        else:
            fail.append(word)
    return Change(tuple(fail), tuple(repair), tuple(degrade), limit)


def about(whatif: WhatIf, address: str) -> Change:
    """What if this failed; or, where it is down or slow, if it were repaired."""
    target = target_of(whatif.topo, address)
    links = target.links
    slow = bool(len(links)) and bool((whatif.state.speed[links] < 0.99 * whatif.topo.links.speed[links]).all())
    if slow or is_down(whatif.topo, whatif.state, target):
        return Change(repair=(address,))
    return Change(fail=(address,))


def work_out(snapshot: Snapshot, text: str, place: int) -> Answer | Sweep | Calibration:
    """The answer to a question; `?ADDRESS` asks about that. Without one, every single failure of a class of parts.

    place: which of the classes that this fabric has, counted round. Raises InputError for what makes no sense.
    """
    whatif = WhatIf.of_snapshot(snapshot)
    if text == TRAFFIC:
        return traffic(snapshot, whatif)
    if text.startswith("?"):
        return whatif.ask(about(whatif, text[1:]))
    if text:
        return whatif.ask(question(text))
    classes = swept(snapshot.topology)
    if not classes:
        raise InputError("nothing is described of this fabric that could fail")
    return singles(whatif, classes[place % len(classes)])


def traffic(snapshot: Snapshot, whatif: WhatIf) -> Calibration:
    """Measured load of every link against that of the jobs' collectives; where no job is named all nodes are one."""
    unknown = np.full(len(snapshot.topology.ports.nic), np.nan)
    intervals = [s.interval_seconds for s in snapshot.sources if s.interval_seconds > 0]
    recent = snapshot.port_age <= max(_RECENT, 3 * float(np.median(intervals or [0.0])))
    tx, rx = (np.where(recent, snapshot.port.get(metric, unknown), np.nan) for metric in ("tx_bytes", "rx_bytes"))
    return calibrate(snapshot.topology, whatif.state.speed, whatif.jobs, tx, rx)


def swept(topo: Topology) -> list[str]:
    """Classes of parts that this fabric has, and not too many of."""
    return [name for name, parts in CLASSES.items() if 0 < len(parts(topo)) <= MOST]


def _number(word: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{word}: {text!r} is not a number") from None
