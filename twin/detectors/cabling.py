"""Findings about cables that go elsewhere than designed: miscabled.

What a discovery saw comes as a frame of kind `link` that names every cable. A planned cable that it did not see
is no finding here: the state of its ports tells whether it is down. One that leads to another port is.
"""

from __future__ import annotations

import numpy as np

from twin.detectors.finding import NO_LINKS, Finding, LinkRows, Story
from twin.detectors.tell import affected
from twin.frames import Frame
from twin.incident import Evidence
from twin.topology.drift import Cable, Mistake, mistaken_cables
from twin.topology.model import Topology

_SHOWN = 4  # ports quoted as evidence


class CablingDetector:
    """Remembers what each source saw last, and compares when that changed."""

    def __init__(self, topo: Topology) -> None:
        self.topo = topo
        self._seen: dict[str, tuple[int, tuple[str, ...]]] = {}  # source -> (time, cables)
        self._changed = False
        self._findings: list[Finding] = []

    def take(self, frame: Frame) -> None:
        before = self._seen.get(frame.source)
        if before is not None and frame.time <= before[0]:
            return
        found = frame.columns.get("found")
        names = frame.names if found is None else tuple(np.array(frame.names, dtype=object)[found == 1])
        self._changed |= before is None or before[1] != names
        self._seen[frame.source] = (frame.time, names)

    def findings(self) -> list[Finding]:
        """One finding a mistake."""
        if self._changed:
            self._changed = False
            cables = [cable for _, names in self._seen.values() for name in names if (cable := _ends(name))]
            self._findings = [
                self._finding(m) for m in mistaken_cables(self.topo, cables) if m.kind in ("swapped", "moved")
            ]
        return self._findings

    def _finding(self, mistake: Mistake) -> Finding:
        times = [time for time, names in self._seen.values() if any(_ends(n) in mistake.found for n in names)]
        since = min(times, default=0)
        story = self._tell(mistake)
        return Finding("miscabled", mistake.cause, since, True, NO_LINKS, mistake.found, lambda: story)

    def _tell(self, mistake: Mistake) -> Story:
        planned = {p: far for a, b in mistake.planned for p, far in ((a, b), (b, a))}
        found = {p: far for a, b in mistake.found for p, far in ((a, b), (b, a))}
        evidence = [Evidence(p, "peer", found.get(p), planned.get(p)) for p in sorted(planned) if p in found]
        where = "another switch than planned" if mistake.crossing else "the right switch, at another port"
        cables = ", ".join(f"{a} belongs to {b}" for a, b in mistake.planned)
        return Story(
            "warning" if mistake.crossing else "info",
            affected(self.topo, self._gpus(mistake)),
            {},
            tuple(evidence[:_SHOWN]),
            f"cables lead to {where}: {mistake.text}",
            f"Put the cables as planned ({cables}), or correct the wiring file if the plan is wrong.",
        )

    def _gpus(self, mistake: Mistake) -> LinkRows:
        rows = [self.topo.rows("port").get(p, -1) for cable in mistake.planned + mistake.found for p in cable]
        nics = {int(self.topo.ports.nic[r]) for r in rows if r >= 0} - {-1}
        return np.flatnonzero(np.isin(self.topo.gpus.nic, sorted(nics)))


def _ends(name: str) -> Cable | None:
    a, _, b = name.partition("--")
    return (a, b) if a and b else None
