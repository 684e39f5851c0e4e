"""Which devices are switches and which are hosts, where the input does not say; and what is left out."""

from __future__ import annotations

from collections import Counter, defaultdict

from twin.topology.importers import hints
from twin.topology.importers.sketch import Device, DeviceKind, Sketch

# How much each sign weighs. A host with containers bridges and routes too, and switches run Debian, so these
# say least.
_NAME, _RUNS_SWITCH, _PORTS, _RUNS_HOST, _BRIDGES = 4, 4, 2, 1, 1
_MANY = 4  # a device with no sign at all that so many others are cabled to is a switch


def decide(sketch: Sketch) -> None:
    """Gives every device its kind, and says in the notes how many were told by what."""
    ports: dict[str, set[str]] = defaultdict(set)
    around: dict[str, set[str]] = defaultdict(set)
    for cable in sketch.cables:
        for end, other in ((cable.a, cable.b), (cable.b, cable.a)):
            around[end.device].add(other.device)
            if end.port is not None:
                ports[end.device].add(end.port)
    told: Counter[str] = Counter()
    for device in sketch.devices.values():
        if device.kind is None:
            device.kind, why = _by_signs(device, ports[device.name])
            if device.kind is None:
                device.kind = "switch" if len(around[device.name]) >= _MANY else "host"
                why = "the number of devices cabled to it"
            told[why] += 1
    if told:
        reasons = ", ".join(f"{why} ({n})" for why, n in told.most_common())
        sketch.notes.append(f"what is a host and what a switch was told by {reasons}")


def _by_signs(device: Device, ports: set[str]) -> tuple[DeviceKind | None, str]:
    score = 0
    signs: list[tuple[int, str]] = []
    if hints.says_switch(device.name) != hints.says_host(device.name):
        signs.append((_NAME if hints.says_switch(device.name) else -_NAME, "its name"))
    if (runs := hints.runs(device.description)) is not None:
        signs.append((_RUNS_SWITCH if runs == "switch" else -_RUNS_HOST, "its description"))
    if ports:
        like_switch = sum(hints.is_switch_port(p) for p in ports)
        signs.append((_PORTS if 2 * like_switch > len(ports) else -_PORTS, "the names of its ports"))
    if device.bridge is not None:
        signs.append((_BRIDGES if device.bridge else -_BRIDGES, "whether it bridges"))
    score = sum(weight for weight, _ in signs)
    if not score:
        return None, ""
    best = max((s for s in signs if (s[0] > 0) == (score > 0)), key=lambda s: abs(s[0]))
    return ("switch" if score > 0 else "host"), best[1]


def leave_out_management(sketch: Sketch) -> None:
    """Drops the management network: it carries no traffic of GPUs, and would look like a plane of its own."""
    out = {d.name for d in sketch.devices.values() if d.kind == "switch" and hints.out_of_band(d.name)}
    kept, dropped = [], 0
    for cable in sketch.cables:
        ends = (cable.a, cable.b)
        if any(e.device in out or (e.port is not None and hints.out_of_band(e.port)) for e in ends):
            dropped += 1
        else:
            kept.append(cable)
    if not dropped:
        return
    sketch.cables = kept
    cabled = {end.device for cable in kept for end in (cable.a, cable.b)}
    for name in out - cabled:
        del sketch.devices[name]
    sketch.notes.append(
        f"left out: {dropped} cables of the management network (devices or ports named oob, mgmt, bmc and so on)"
    )
