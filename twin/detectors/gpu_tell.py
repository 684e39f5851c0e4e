"""Findings about GPUs in words and numbers."""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt

from twin.detectors.finding import Story
from twin.detectors.scene import Scene
from twin.detectors.tell import affected
from twin.detectors.xids import Xid
from twin.incident import Evidence
from twin.topology.model import Topology

Rows = npt.NDArray[np.intp]
REASONS = ((0x40, "heat (hardware)"), (0x20, "heat (software)"), (0x80, "power brake"), (0x8, "hardware slowdown"))
_TODO = {
    "fatal": "Drain {node}, reset {gpu}, and run the vendor's diagnostics before it works again.",
    "contained": "Start the program again; reset {gpu} at the next chance, so that the bad memory is replaced.",
    "nvlink": "Look at the NVLinks of {gpu} first; drain {node} and reset the GPU if it comes again.",
    "unlisted": "Look the code up in the vendor's XID catalog before you act.",
}
_LOCKSTEP = "jobs in lockstep go at its pace"


class GpuTeller:
    def __init__(self, topo: Topology) -> None:
        self.topo = topo

    def place(self, gpus: Rows) -> str:
        """The smallest address that holds them all: a GPU, its node, its domain, else `gpus`."""
        topo = self.topo
        if len(gpus) == 1:
            return str(topo.gpu_names[gpus[0]])
        nodes, domains = np.unique(topo.gpus.node[gpus]), np.unique(topo.gpus.domain[gpus])
        if len(nodes) == 1:
            return str(topo.nodes.name[nodes[0]])
        if len(domains) == 1 and domains[0] >= 0:
            return f"domain:{topo.domains.name[domains[0]]}"
        return "gpus"

    def _todo(self, gpu: int, xid: Xid) -> str:
        name = self.topo.gpu_names[gpu]
        text = _TODO.get(xid.what, _TODO["fatal"]).format(gpu=name, node=name.partition("/")[0])
        return f"{xid.do} {text}" if xid.do else text

    def lost(self, gpu: int, xid: Xid | None) -> Story:
        name = self.topo.gpu_names[gpu]
        node = name.partition("/")[0]
        why = f", XID {xid.code}: {xid.means}" if xid else ""
        evidence = [Evidence(name, "power_watts", None, None)]
        if xid:
            evidence.append(Evidence(name, "xid", float(xid.code), 0.0))
        return Story(
            "critical", affected(self.topo, np.array([gpu])), {"gpus_lost": 1.0}, tuple(evidence),
            f"GPU {name} is lost{why}: nothing can be read of it, {node} still reports its others",
            f"Jobs on {node} fail or hang. Drain it and reboot; if the GPU falls off again reseat it (PCIe, power), "
            "then replace it.",
        )  # fmt: skip

    def error(self, gpu: int, xid: Xid | None, ecc: int) -> Story:
        name = self.topo.gpu_names[gpu]
        said, evidence = [], []
        if xid:
            said.append(f"XID {xid.code}: {xid.means}")
            evidence.append(Evidence(name, "xid", float(xid.code), 0.0))
        if ecc:
            said.append(f"{ecc} new uncorrected memory error{'s' if ecc > 1 else ''}")
            evidence.append(Evidence(name, "ecc_uncorrected", float(ecc), 0.0))
        worst = xid or Xid(0, "contained", "")
        effect = {"memory_errors": float(ecc)} if ecc else {}
        severity = "critical" if worst.what in ("fatal", "lost") else "warning"
        who = affected(self.topo, np.array([gpu]))
        return Story(severity, who, effect, tuple(evidence), f"GPU {name}: {', '.join(said)}", self._todo(gpu, worst))

    def nvlink_error(self, cause: str, gpu: int, xids: dict[int, Xid]) -> Story:
        evidence = tuple(
            Evidence(self.topo.gpu_names[g], "xid", float(x.code), 0.0) for g, x in list(xids.items())[:4]
        )
        others = len(xids) - 1
        peers = f", and {others} of its peers report NVLink errors too" if others else ""
        if cause.startswith("domain:"):
            codes = ", ".join(f"XID {c} on {n}" for c, n in sorted(Counter(x.code for x in xids.values()).items()))
            summary = f"NVLink errors on {len(xids)} GPUs of {cause.replace(':', ' ')} at once ({codes})"
            advice = "So many at once share a switch or the fabric manager: check these before any GPU."
        else:
            summary = f"GPU {cause}: XID {xids[gpu].code}: {xids[gpu].means}{peers}"
            advice = self._todo(gpu, xids[gpu])
        return Story("warning", affected(self.topo, np.array(sorted(xids))), {}, evidence, summary, advice)

    def program(self, cause: str, gpus: Rows, xids: list[Xid]) -> Story:
        """A program ended, or failed by its own fault."""
        codes = ", ".join(f"XID {c}" for c in sorted({x.code for x in xids}))
        names = [self.topo.gpu_names[g] for g in gpus.tolist()]
        evidence = tuple(Evidence(n, "xid", float(x.code), 0.0) for n, x in list(zip(names, xids, strict=True))[:4])
        if len(gpus) > 1:
            summary = f"{codes} on {len(gpus)} GPUs at once: a program ended there, no fault of these GPUs"
            advice = "Read the job's log for why it ended. Do not drain these nodes for it."
        else:
            summary = f"GPU {cause}: {codes}, {xids[0].means}"
            advice = (
                "Nearly always the program: start it again. If the same GPU says so with other programs, test it."
            )
        return Story("info", affected(self.topo, gpus), {}, evidence, summary, advice)

    def throttled(self, cause: str, gpus: Rows, bits: int, scene: Scene) -> Story:
        who = affected(self.topo, gpus)
        why = " and ".join(word for bit, word in REASONS if bits & bit) or "its own protection"
        clock, heat = scene.fresh("gpu", "sm_clock_hertz"), scene.fresh("gpu", "temperature_celsius")
        name = self.topo.gpu_names[gpus[0]]
        evidence = [Evidence(name, "throttle_reasons", float(bits), 0.0)]
        effect = {}
        peers = np.flatnonzero(self.topo.gpus.domain == self.topo.gpus.domain[gpus[0]])
        usual = np.setdiff1d(peers if len(gpus) < len(peers) else np.arange(len(clock)), gpus)
        if not np.isnan(clock[gpus]).all() and not np.isnan(clock[usual]).all():
            low, median = float(np.nanmin(clock[gpus])), float(np.nanmedian(clock[usual]))
            evidence.append(Evidence(name, "sm_clock_hertz", low, median))
            effect["clock_fraction"] = low / median
        if not np.isnan(heat[gpus[0]]):
            evidence.append(Evidence(name, "temperature_celsius", float(heat[gpus[0]]), None))
        one = len(gpus) == 1
        what = f"GPU {cause} is" if one else f"{len(gpus)} GPUs of {cause} are"
        node = name.partition("/")[0]
        if bits & 0x60:
            advice = f"Check cooling of {node}: inlet temperature, fans or coolant flow" + (
                f", then the seat of {name} (its neighbours are not hot)." if one else "; one GPU alone it is not."
            )
        elif bits & 0x80:
            advice = f"The power brake was pulled from outside: check supplies and feeds of {node} and its rack."
        else:
            advice = f"The board slows itself: read power and temperature events of {node}'s management controller."
        return Story("warning", who, effect, tuple(evidence), f"{what} slowed by {why}: {_LOCKSTEP}", advice)


def by_node(topo: Topology, gpus: Rows) -> list[tuple[str, Rows]]:
    """A node of which more than half of the GPUs, and more than one, are among `gpus`; else the GPUs alone."""
    nodes, counts = np.unique(topo.gpus.node[gpus], return_counts=True)
    out: list[tuple[str, Rows]] = []
    for n, count in zip(nodes.tolist(), counts.tolist(), strict=True):
        mine = gpus[topo.gpus.node[gpus] == n]
        if count > 1 and count > topo.nodes.n_gpus[n] / 2:
            out.append((topo.nodes.name[n], mine))
        else:
            out += [(topo.gpu_names[g], np.array([g])) for g in mine.tolist()]
    return out
