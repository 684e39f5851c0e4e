"""Findings about NVLinks in words and numbers: who pays, what is left, what to do."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from twin.detectors.finding import Story
from twin.detectors.tell import affected
from twin.incident import Affected, Evidence
from twin.topology.model import Topology

Rows = npt.NDArray[np.intp]
_SHOWN = 4  # readings quoted as evidence


class NvlinkTeller:
    def __init__(self, topo: Topology) -> None:
        self.topo = topo

    def address(self, what: str, rows: tuple[int, ...]) -> str:
        """How a cause is named; the chips of a switch tray as `r00/nvsw04+nvsw05`."""
        topo = self.topo
        if what == "domain":
            return f"domain:{topo.domains.name[rows[0]]}"
        if what == "chip":
            first, *others = (topo.nvswitch_names[r] for r in sorted(rows))
            return "+".join((first, *(o.rpartition("/")[2] for o in others)))
        names = {"node": topo.nodes.name, "gpu": topo.gpu_names, "link": topo.nvlink_names}
        return names[what][rows[0]]

    def scope(self, what: str, rows: tuple[int, ...], links: Rows) -> frozenset[str]:
        """What it accounts for: itself and these links; a domain with its GPUs."""
        topo = self.topo
        own = {self.address(what, rows), *(topo.nvlink_names[r] for r in links.tolist())}
        if what == "domain":
            own |= {topo.gpu_names[g] for g in topo.domains.gpu_rows[rows[0]].tolist()}
        if what == "chip":
            own |= {topo.nvswitch_names[r] for r in rows}
        return frozenset(own)

    def rack_scale(self, domain: int) -> bool:
        """Whether its switch chips sit in trays of their own: the GPUs are of several nodes."""
        return len(np.unique(self.topo.gpus.node[self.topo.domains.gpu_rows[domain]])) > 1

    def first_chip(self, domain: int) -> int:
        return sum(len(chips) for chips in self.topo.domains.switches[:domain])

    # --- down ---

    def down(self, what: str, rows: tuple[int, ...], links: Rows, whole: bool) -> Story:
        topo = self.topo
        if what == "chip":  # by design: those that are not read lost theirs too
            links = np.flatnonzero(np.isin(topo.nvlink_switch, rows))
        who = affected(topo, np.unique(topo.nvlink_gpu[links]))
        left = self._left(links)
        critical = what in ("domain", "chip", "node") or (what == "gpu" and whole)
        effect = {"nvlink_fraction": left}
        evidence = tuple(Evidence(topo.nvlink_names[r], "up", 0.0, 1.0) for r in links[:_SHOWN].tolist())
        summary, advice = self._words(what, rows, links, who, left, whole)
        return Story("critical" if critical else "warning", who, effect, evidence, summary, advice)

    def _left(self, links: Rows) -> float:
        """The least share of its NVLinks that a GPU keeps."""
        gpu = self.topo.nvlink_gpu[links]
        lost = np.bincount(gpu, minlength=len(self.topo.gpus.node))
        mine = np.unique(gpu)
        return float((1 - lost[mine] / self.topo.nvlinks_per_gpu[mine]).min()) if len(mine) else 1.0

    def _words(
        self, what: str, rows: tuple[int, ...], links: Rows, who: Affected, left: float, whole: bool
    ) -> tuple[str, str]:
        name, many = self.address(what, rows), len(links)
        if what == "domain":
            return (
                f"NVLink domain {self.topo.domains.name[rows[0]]} is down: none of its {many} NVLinks is active, "
                f"{who.gpus} GPUs reach each other over the network alone",
                "All at once is no cable: check the fabric manager, NVLink switches and their power and last change.",
            )
        if what == "chip":
            chips = f"chips {name} (one switch tray)" if len(rows) > 1 else f"chip {name}"
            advice = (
                f"Every GPU lost the same links, so it is the switch: check tray, power and firmware of {name}. "
                "Running jobs may not survive it; drain the domain before you reset it."
            )
            if not self.rack_scale(self._domain_of(links)):
                advice = (
                    f"Every GPU lost the same links, so it is the switch. Drain the node and reset the board; if "
                    f"{name} stays down the board must be replaced. New CUDA programs may not start meanwhile."
                )
            are = "are" if len(rows) > 1 else "is"
            return f"NVLink switch {chips} {are} down: {who.gpus} GPUs keep {left:.1%} of NVLink bandwidth", advice
        if what == "node":
            return (
                f"all NVLinks of all {who.gpus} GPUs of {name} are inactive: it has left its NVLink domain",
                f"Check the NVLink connectors (cable cartridge) of tray {name} and its fabric registration.",
            )
        if what == "gpu":
            total = int(self.topo.nvlinks_per_gpu[rows[0]])
            peers = "its peers keep theirs"
            return (
                f"GPU {name} has {total - many} of {total} NVLinks: {peers}",
                f"Drain {name.partition('/')[0]} from multi-GPU jobs and reset {name} (then reboot); others reported "
                "that a reboot brings the links back. If it returns, the GPU or its baseboard is at fault.",
            )
        chip = self.topo.nvlink_switch[rows[0]]
        far = f" to {self.topo.nvswitch_names[chip]}" if chip >= 0 else ""
        return (
            f"NVLink {name}{far} is inactive: the GPU keeps {left:.1%} of NVLink bandwidth",
            f"One inactive link is enough for the vendor's health check to drain: reset {name.rpartition('/')[0]}; "
            "if the same link fails again it is the link, not the software.",
        )

    def _domain_of(self, links: Rows) -> int:
        return int(self.topo.gpus.domain[self.topo.nvlink_gpu[links[0]]])
