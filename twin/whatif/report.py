"""An answer in its JSON form (design, section 8)."""

from __future__ import annotations

from typing import Any

import numpy as np

from twin.whatif.figures import F64, Ints, Power
from twin.whatif.foresight import Foreseen
from twin.whatif.question import SAME, Answer, JobChange

_DIGITS = 4  # of a share


def to_json(answer: Answer) -> dict[str, Any]:
    """Names are stable; unknown numbers are null."""
    change = answer.change
    return {
        "failed": list(change.fail),
        "repaired": list(change.repair),
        "degraded": [{"address": a, "speed_fraction": f} for a, f in change.degrade],
        "gpu_limit_watts": change.limit,
        "gpus_affected": int(answer.losers.sum()),
        "gpus_better": int(answer.gainers.sum()),
        "gpus_cut_off": int(answer.after.cut_off.sum()),
        "bandwidth_fraction": spread(answer.after.gpu),
        "bandwidth_fraction_before": spread(answer.before.gpu),
        "nvlink_fraction": spread(answer.after.nvlink),
        "planes": planes(answer),
        "power": power(answer),
        "collectives": [job_to_json(job) for job in answer.jobs],
        "incidents": [_incident(incident) for incident in answer.incidents],
        "incidents_ended": [{"kind": kind, "cause": cause} for kind, cause in answer.ended],
    }


def spread(share: F64) -> dict[str, Any]:
    """How many GPUs have which share; those of which it is not known, or that have none, are left out."""
    known = share[~np.isnan(share)]
    if not len(known):
        return {"min": None, "mean": None, "by_fraction": {}}
    values, counts = np.unique(known.round(_DIGITS), return_counts=True)
    by = {f"{value:g}": count for value, count in zip(values.tolist(), counts.tolist(), strict=True)}
    return {"min": float(known.min()), "mean": float(known.mean()), "by_fraction": by}


def planes(answer: Answer) -> list[dict[str, Any]]:
    before, after = answer.before, answer.after
    return [
        {
            "plane": name,
            "capacity_fraction": float(after.plane[p]),
            "capacity_fraction_before": float(before.plane[p]),
            "bisection_bits_per_second": float(after.bisection[p]),
            "links_down": int(after.links_down[p]),
        }
        for p, name in enumerate(answer.topo.planes)
    ]


def power(answer: Answer) -> list[dict[str, Any]]:
    """Racks and nodes whose load or headroom changes."""
    model = answer.meter.power_model
    return [
        {
            "name": model.name(holder),
            "kind": "node" if holder < model.n_nodes else "rack",
            **_watts(answer.after.power, holder, ""),
            **_watts(answer.before.power, holder, "_before"),
            "lost": int(answer.after.power.lost_units[holder]),
        }
        for holder in changed_holders(answer).tolist()
    ]


def changed_holders(answer: Answer) -> Ints:
    """Rows of nodes with supplies and of racks whose load or capacity changes, those with the least left first."""
    before, after = answer.before.power, answer.after.power
    columns = ((before.load, after.load), (before.capacity, after.capacity), (before.after_next, after.after_next))
    differs = np.zeros(len(after.load), bool)
    for one, other in columns:
        differs |= ~np.isclose(one, other, rtol=SAME, equal_nan=True)
    racks = np.arange(len(differs)) >= answer.meter.power_model.n_nodes
    rows = np.flatnonzero(differs & (racks | ~np.isnan(after.capacity)))
    order: Ints = rows[np.argsort(after.headroom[rows], kind="stable")]  # unknown last
    return order


def _watts(power: Power, holder: int, when: str) -> dict[str, float | None]:
    values = (power.load, power.capacity, power.headroom, power.headroom_after_next)
    names = ("watts", "capacity_watts", "headroom_watts", "headroom_after_loss_watts")
    return {
        f"{name}{when}": None if np.isnan(v[holder]) else round(float(v[holder]), 1)
        for name, v in zip(names, values, strict=True)
    }


def job_to_json(job: JobChange) -> dict[str, Any]:
    return {
        "job": job.name,
        "collective": job.before.collective,
        "algorithm": job.before.algorithm,
        "bus_bytes_per_second_before": job.before.bus_bandwidth,
        "bus_bytes_per_second": job.after.bus_bandwidth,
        "fraction": job.fraction,
        "limit": job.after.limit,
        "link": job.after.link or None,
        "gpus_lost": job.lost,
    }


def _incident(foreseen: Foreseen) -> dict[str, Any]:
    story = foreseen.story
    who = story.affected
    return {
        "kind": foreseen.kind,
        "severity": story.severity,
        "cause": foreseen.cause,
        "affected": {"gpus": who.gpus, "nodes": who.nodes, "names": list(who.names)},
        "effect": {name: round(value, 6) for name, value in story.effect.items()},
        "summary": story.summary,
        "advice": story.advice,
    }
