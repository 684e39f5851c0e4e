"""What `topology show` says of a fabric: counts, links and cables."""

from __future__ import annotations

from typing import Any

import numpy as np

from twin.topology.model import COMPUTE, DIRECT, LINK_TIERS, ROLES, TIERS, Topology
from twin.units import show_speed


def summary(topo: Topology) -> dict[str, Any]:
    """The numbers of a fabric (design, section 8); a link joins two ports, a cable may hold several."""
    tier = np.bincount(topo.switches.tier, minlength=3)
    roles = np.bincount(topo.nodes.role, minlength=len(ROLES))
    links = {name: int(np.count_nonzero(topo.links.tier == t)) for t, name in enumerate(LINK_TIERS)}
    links["nvlink"] = int(topo.nvlinks_per_gpu.sum())
    cables = {name: len(np.unique(topo.links.cable[topo.links.tier == t])) for t, name in enumerate(LINK_TIERS)}
    for optional in LINK_TIERS[2 : DIRECT + 1]:
        if not links[optional]:
            del links[optional], cables[optional]
    host = topo.links.tier == 0
    per_gpu = _network_per_gpu(topo)
    return {
        "name": topo.name,
        "gpus": len(topo.gpus.node),
        "nodes": int(roles[COMPUTE]),
        "planes": len(topo.planes),
        **{f"{name}{'s' if name != 'leaf' else ''}" if name != "leaf" else "leaves": int(tier[i])
           for i, name in enumerate(TIERS)},
        "nvlink_domains": len(topo.domains.name),
        "nvswitches": sum(len(s) for s in topo.domains.switches),
        "links": links,
        "cables": cables,
        "network_bits_per_second_per_gpu": per_gpu,
        "host_link_bits_per_second": float(np.max(topo.links.speed[host])) if host.any() else 0.0,
        "racks": len(topo.racks.name),
        "hosts_by_role": {name: int(roles[i]) for i, name in enumerate(ROLES) if roles[i]},
    }  # fmt: skip


def _network_per_gpu(topo: Topology) -> float:
    if not len(topo.gpus.node):
        return 0.0
    total = np.nansum(np.where(topo.ports.compute, topo.port_speed, 0.0))
    return float(total / len(topo.gpus.node))


def text(topo: Topology) -> str:
    """The same for a person."""
    s = summary(topo)
    rows = [
        (
            "GPUs",
            f"{s['gpus']} in {s['nodes']} nodes, {show_speed(s['network_bits_per_second_per_gpu'])}b/s each",
        ),
        ("planes", f"{s['planes']}: {', '.join(topo.planes)}" if topo.planes else "none"),
        (
            "switches",
            f"{s['leaves']} leaves, {s['spines']} spines" + (f", {s['cores']} cores" if s["cores"] else ""),
        ),
        ("links", ", ".join(f"{n} {k.replace('_', '-')}" for k, n in s["links"].items())),
        ("cables", ", ".join(f"{n} {k.replace('_', '-')}" for k, n in s["cables"].items())),
        ("NVLink", f"{s['nvlink_domains']} domains, {s['nvswitches']} switch chips"),
    ]
    others = {k: v for k, v in s["hosts_by_role"].items() if k != "compute"}
    if others:
        rows.append(("other hosts", ", ".join(f"{n} {role}" for role, n in others.items())))
    lines = [s["name"], *(f"  {key:<12} {value}" for key, value in rows)]
    lines.extend(f"  note         {note}" for note in topo.notes)
    return "\n".join(lines)
