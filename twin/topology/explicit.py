"""A Topology in its explicit form, the way back from `twin.topology.wiring`."""

from __future__ import annotations

from typing import Any

import numpy as np

from twin.topology.builder import default_nic_of_gpu
from twin.topology.model import COMPUTE, NONE, ROLES, TIERS, Topology
from twin.units import bits_per_second, show_speed


def to_wiring(topo: Topology) -> dict[str, Any]:
    """The explicit form of a Topology, ready for YAML or JSON; reading it gives the same tables."""
    out: dict[str, Any] = {"name": topo.name, "planes": list(topo.planes)}
    if has_brackets(topo):
        out["ranges"] = False
    out |= {"nodes": nodes(topo), "switches": switches(topo), "links": _links(topo)}
    out |= {"domains": domains(topo), "racks": racks(topo)}
    if topo.site_watts is not None:
        out["site_watts"] = topo.site_watts
    if topo.jobs:
        out["jobs"] = jobs(topo)
    return out


def has_brackets(topo: Topology) -> bool:
    """Whether a name holds brackets, which would be read as ranges."""
    chips = (chip for names in topo.domains.switches for chip in names)
    named = (topo.nodes.name, topo.switches.name, topo.racks.name, topo.domains.name, topo.feeds.name, chips)
    return any("[" in name or "]" in name for names in named for name in names)


def switches(topo: Topology) -> list[dict[str, Any]]:
    return [
        _drop(
            name=name, tier=TIERS[t], plane=topo.planes[p] if p >= 0 else None,
            model=model if model != "unknown" else None, ports=radix or None,
            rail=rail if rail >= 0 else None, label=topo.labels.get(name),
        )
        for name, t, p, model, radix, rail in zip(
            topo.switches.name, topo.switches.tier.tolist(), topo.switches.plane.tolist(), topo.switches.model,
            topo.switches.radix.tolist(), topo.switches.rail.tolist(), strict=True,
        )
    ]  # fmt: skip


def shared_cables(topo: Topology) -> set[int]:
    return set(np.flatnonzero(np.bincount(topo.links.cable) > 1).tolist()) if len(topo.links.cable) else set()


def _links(topo: Topology) -> list[dict[str, Any]]:
    ports, shared = topo.port_names, shared_cables(topo)
    return [
        _drop(a=ports[a], b=ports[b], speed=show_exact(s), cable=f"c{c}" if c in shared else None)
        for a, b, s, c in zip(
            topo.links.a.tolist(), topo.links.b.tolist(), topo.links.speed.tolist(),
            topo.links.cable.tolist(), strict=True,
        )
    ]  # fmt: skip


def domains(topo: Topology) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "gpus": [topo.gpu_names[g] for g in rows.tolist()],
            "switches": list(chips),
            "links_per_gpu": int(topo.domains.links_per_gpu[i]),
            "speed": f"{topo.domains.speed[i] / 1e9:g}GB/s",
        }
        for i, (name, rows, chips) in enumerate(
            zip(topo.domains.name, topo.domains.gpu_rows, topo.domains.switches, strict=True)
        )
    ]


def racks(topo: Topology) -> list[dict[str, Any]]:
    feeds: dict[int, list[dict[str, Any]]] = {}
    for feed, rack, watts in zip(topo.feeds.name, topo.feeds.rack.tolist(), topo.feeds.watts.tolist(), strict=True):
        feeds.setdefault(rack, []).append({"name": feed, "watts": watts})
    out = []
    for i, (name, redundancy) in enumerate(zip(topo.racks.name, topo.racks.redundancy, strict=True)):
        psus, watts = _supplies(topo, int(topo.racks.psu0[i]), int(topo.racks.n_psus[i]))
        out.append(_drop(name=name, feeds=feeds.get(i, []), redundancy=redundancy, psus=psus, psu_watts=watts))
    return out


def jobs(topo: Topology) -> list[dict[str, Any]]:
    return [
        {"name": job, "nodes": [topo.nodes.name[n] for n in rows], "collective": kind}
        for job, rows, kind in topo.jobs
    ]


def nodes(topo: Topology) -> list[dict[str, Any]]:
    nodes, out = topo.nodes, []
    for i, name in enumerate(nodes.name):
        nic0, n_nics = int(nodes.nic0[i]), int(nodes.n_nics[i])
        gpu0, n_gpus = int(nodes.gpu0[i]), int(nodes.n_gpus[i])
        numbers = topo.nics.ordinal[nic0 : nic0 + n_nics].tolist()
        of_gpu = [n - nic0 if n >= 0 else NONE for n in topo.gpus.nic[gpu0 : gpu0 + n_gpus].tolist()]
        psus, watts = _supplies(topo, int(nodes.psu0[i]), int(nodes.n_psus[i]))
        role = ROLES[nodes.role[i]]
        usual = default_nic_of_gpu(n_gpus, n_nics) if role == ROLES[COMPUTE] else (NONE,) * n_gpus
        out.append(
            _drop(
                name=name, rack=topo.racks.name[nodes.rack[i]] if nodes.rack[i] >= 0 else None,
                role=role if role != "compute" else None, gpu_model=nodes.gpu_model[i], gpus=n_gpus,
                nics=n_nics if numbers == list(range(n_nics)) else numbers,
                ports_per_nic=int(topo.nics.n_ports[nic0]) if n_nics else None,
                first_port=int(topo.ports.ordinal[topo.nics.port0[nic0]]) or None if n_nics else None,
                nic_of_gpu=None if tuple(of_gpu) == usual else of_gpu,
                psus=psus, psu_watts=watts, label=topo.labels.get(name),
            )
        )  # fmt: skip
    return out


def _supplies(topo: Topology, first: int, count: int) -> tuple[int | None, float | None]:
    """How many supplies an owner has and what each can give; None for what is left out."""
    watts = float(topo.psus.watts[first]) if count else float("nan")
    return count or None, watts if watts == watts else None


def show_exact(bits: float) -> str | float | None:
    """A speed as people write it where that loses nothing; None where it is unknown."""
    if bits != bits:
        return None
    text = show_speed(bits)
    return text if bits_per_second(text) == bits else bits


def _drop(**values: Any) -> dict[str, Any]:
    return {k: v for k, v in values.items() if v is not None}
