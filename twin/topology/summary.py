"""What `topology show` says of a fabric: counts, links, cables, bandwidths and where it ends."""

from __future__ import annotations

from typing import Any

import numpy as np

from twin.topology import figures
from twin.topology.model import COMPUTE, DIRECT, LINK_TIERS, ROLES, TIERS, Topology
from twin.topology.presets import scale_limit
from twin.units import show_speed, show_watts


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
    per_gpu, nvlink = figures.network_per_gpu(topo), figures.nvlink_per_gpu(topo)
    limit = scale_limit(topo.name, len(topo.planes))
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
        "plane_kind": topo.plane_kind,
        "nvlink_bytes_per_second_per_gpu": nvlink,
        "nvlink_bytes_per_second_per_domain": figures.nvlink_per_domain(topo),
        "nvlink_to_network_ratio": nvlink / 2 * 8 / per_gpu if per_gpu and nvlink else None,
        "bisection_bits_per_second": figures.bisection(topo),
        "oversubscription": figures.oversubscription(topo),
        "switch_ports": figures.switch_ports(topo),
        "gpus_in_one_hop": figures.one_hop(topo),
        "feeds": len(topo.feeds.name),
        "feed_watts": float(topo.feeds.watts.sum()),
        "scale_limit": {"gpus": limit[0], "reason": limit[1]} if limit else None,
    }  # fmt: skip


_MEANING = {
    "split": "every NIC has a port in each",
    "rail": "each NIC sits in one, planes meet inside the node",
    "none": "",
}


def _planes(topo: Topology) -> str:
    if not topo.planes:
        return "none"
    meaning = _MEANING[topo.plane_kind]
    return f"{len(topo.planes)}: {', '.join(topo.planes)}" + (f" ({topo.plane_kind}: {meaning})" if meaning else "")


def _nvlink(s: dict[str, Any]) -> str:
    if not s["nvlink_domains"]:
        return "none"
    chips = f"{s['nvlink_domains']} domains, {s['nvswitches']} switch chips"
    size = f"{s['nvlink_bytes_per_second_per_gpu'] / 1e9:g} GB/s a GPU both ways"
    ratio = s["nvlink_to_network_ratio"]
    return f"{chips}, {size}" + (f", {ratio:.3g} times its network" if ratio else "")


def _bandwidth(s: dict[str, Any]) -> list[tuple[str, str]]:
    """Rows on bisection, oversubscription and ports."""
    rows = []
    across = s["bisection_bits_per_second"]
    if across:
        same = len(set(across.values())) == 1
        first = f"{show_speed(next(iter(across.values())))}b/s" + (" a plane" if len(across) > 1 else "")
        each = ", ".join(f"{name} {show_speed(v)}b/s" for name, v in across.items())
        rows.append(("bisection", first if same else each))
    if s["oversubscription"]:
        rows.append(
            ("down : up", ", ".join(f"{tier} {ratio:.3g}:1" for tier, ratio in s["oversubscription"].items()))
        )
    if s["switch_ports"]["total"]:
        rows.append(("switch ports", f"{s['switch_ports']['used']} of {s['switch_ports']['total']} used"))
    return rows


def text(topo: Topology) -> str:
    """The same for a person."""
    s = summary(topo)
    rows = [
        (
            "GPUs",
            f"{s['gpus']} in {s['nodes']} nodes, {show_speed(s['network_bits_per_second_per_gpu'])}b/s each",
        ),
        ("planes", _planes(topo)),
        (
            "switches",
            f"{s['leaves']} leaves, {s['spines']} spines" + (f", {s['cores']} cores" if s["cores"] else ""),
        ),
        ("links", ", ".join(f"{n} {k.replace('_', '-')}" for k, n in s["links"].items())),
        ("cables", ", ".join(f"{n} {k.replace('_', '-')}" for k, n in s["cables"].items())),
        ("NVLink", _nvlink(s)),
        *_bandwidth(s),
    ]
    if s["feeds"]:
        rows.append(("power", f"{s['feeds']} feeds, {show_watts(s['feed_watts'])} in all"))
    if s["scale_limit"]:
        rows.append(("ends at", f"{s['scale_limit']['gpus']} GPUs: {s['scale_limit']['reason']}"))
    others = {k: v for k, v in s["hosts_by_role"].items() if k != "compute"}
    if others:
        rows.append(("other hosts", ", ".join(f"{n} {role}" for role, n in others.items())))
    lines = [s["name"], *(f"  {key:<12} {value}" for key, value in rows)]
    lines.extend(f"  note         {note}" for note in topo.notes)
    return "\n".join(lines)
