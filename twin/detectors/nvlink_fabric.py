"""GPUs that are not part of their NVLink fabric although their links may all be up: nvlink_domain_split.

Registration is 1 not started, 2 in progress, 3 completed. In progress for long is a fault. Not started is one only
where a peer has completed: boards without a fabric manager never start.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from twin.detectors.finding import NO_LINKS, Finding, Story
from twin.detectors.rules import Rules, ns
from twin.detectors.scene import Lasting, Scene
from twin.detectors.tell import affected
from twin.incident import Evidence
from twin.topology.model import Topology

Rows = npt.NDArray[np.intp]
_IN_PROGRESS, _COMPLETED = 2, 3
_WORDS = {1: "not started", 2: "in progress"}


class FabricWatch:
    """Remembers since when each GPU has not been registered, and whether it ever was."""

    def __init__(self, topo: Topology, rules: Rules) -> None:
        self.topo, self.rules = topo, rules
        n = len(topo.gpus.node)
        self._out = Lasting(n)
        self._was_in = np.zeros(n, bool)

    def findings(self, scene: Scene) -> list[Finding]:
        if not scene.heard("gpu", "fabric_state"):
            return []
        state, time = scene.table("gpu").value("fabric_state"), scene.time("gpu", "fabric_state")
        self._was_in |= state == _COMPLETED
        since = self._out.note(np.where(np.isnan(state), np.nan, (state > 0) & (state < _COMPLETED)), time)
        out = since > 0
        if not out.any():
            return []
        # a GPU that was in and fell out did not just boot
        patience = np.where(self._was_in, ns(self.rules.link_debounce), ns(self.rules.fabric_patience))
        late = out & (scene.now - since >= patience)
        domain = self.topo.gpus.domain
        found = []
        for d in np.unique(domain[late & (domain >= 0)]).tolist():
            mine = np.flatnonzero(domain == d)
            peers = bool((state[mine] == _COMPLETED).any())
            bad = mine[late[mine] & ((state[mine] != 1) | peers | self._was_in[mine])]
            known = int((out[mine] | (state[mine] == _COMPLETED)).sum())
            if len(bad) > 1 and len(bad) > known / 2:
                found.append(self._finding(f"domain:{self.topo.domains.name[d]}", bad, int(since[bad].min()), state))
            else:
                found += [
                    self._finding(self.topo.gpu_names[g], np.array([g]), int(since[g]), state) for g in bad.tolist()
                ]
        return found

    def _finding(self, cause: str, gpus: Rows, since: int, state: npt.NDArray[np.float64]) -> Finding:
        names = {self.topo.gpu_names[g] for g in gpus.tolist()} if cause.startswith("domain:") else set()
        tell = partial(self._tell, cause, gpus, state[gpus])
        scope = frozenset({cause, *names}) if names else frozenset()
        kind = "nvlink_domain_split"
        return Finding(kind, cause, since, True, NO_LINKS, gpus.tobytes(), tell, scope=scope)

    def _tell(self, cause: str, gpus: Rows, state: npt.NDArray[np.float64]) -> Story:
        who = affected(self.topo, gpus)
        word = _WORDS.get(int(np.nan_to_num(state[0])), "not completed")
        evidence = tuple(
            Evidence(self.topo.gpu_names[g], "fabric_state", None if s != s else s, float(_COMPLETED))
            for g, s in list(zip(gpus.tolist(), state.tolist(), strict=True))[:4]
        )
        if cause.startswith("domain:"):
            return Story(
                "critical", who, {"nvlink_fraction": 0.0}, evidence,
                f"NVLink {cause.replace(':', ' ')} has come apart: registration of {who.gpus} GPUs is {word}",
                "Links may all be up: check the fabric manager (and IMEX) of the domain first, then its switches.",
            )  # fmt: skip
        return Story(
            "critical", who, {"nvlink_fraction": 0.0}, evidence,
            f"GPU {cause} is not in its NVLink domain: registration is {word} while its peers have completed theirs",
            f"Its links may all be up: reset {cause}; if it does not register then, read the fabric manager's log.",
        )  # fmt: skip
