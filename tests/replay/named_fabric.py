"""A fabric whose every name is somebody's own, the frames it sends while things break, and a site full of secrets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from replay.recorder import Recorder
from replay.records import Note
from twin.frames import NS, Frame
from twin.topology.model import Topology
from twin.topology.wiring import read_wiring
from twin.twin import Twin
from twin.yamlfile import Document

T0 = 1_764_547_200 * NS
NODES = [f"atlanta-dgx{i:02d}" for i in range(4)]
LEAVES = ["MF0;A09-IBLEAF-04:MQM9701", "kestrel-b-tor1"]
RACK, DOMAIN, JOB = "Hall7.R12", "peachtree", "llama9-pretrain"
NAMES = (*NODES, *LEAVES, RACK, DOMAIN, JOB, "acme-prod", "osprey-west", "feedPDU-Fulton")
SECRETS = (
    "hunter2-very-secret", "prom.acme.example", "jane.doe", "10.20.30.40", "/etc/acme/keys", "acme-reader",
    "Jane Doe",
    "s3cr3tT0kenOfTheSite42", "broker.acme.example", "98:03:9b:aa:bb:cc", "bmc-admin", "strange-box", "Fulton county",
)  # fmt: skip
SITE = {
    "name": "acme-prod",
    "topology": {"file": "/etc/acme/keys/wiring.yaml"},
    "collectors": [
        {"prometheus": {"url": "http://prom.acme.example:9090", "token": "hunter2-very-secret"}},
        {"mqtt": {"host": "broker.acme.example", "username": "jane.doe"}},
        {"redfish": {"targets": {NODES[0]: "https://10.20.30.40"}, "username": "bmc-admin"}},
    ],
    "alerts": {"alertmanager": "http://prom.acme.example:9093"},
    "rules": {"link_debounce": 2.0},
    "maintenance": [
        {"what": f"{NODES[3]}/nic0/p0", "from": T0 / NS + 20, "until": T0 / NS + 40, "why": f"Jane Doe in {NODES[3]}"}
    ],
}  # fmt: skip
REMARK = (
    f"{NODES[1].upper()} and {LEAVES[0]} rebooted by jane.doe@acme.example, password: hunter2-very-secret, see "
    "http://prom.acme.example/d/1, bmc at 10.20.30.40 (98:03:9b:aa:bb:cc), atlanta-dgx02.acme.example is fine; "
    "token s3cr3tT0kenOfTheSite42, keys in /etc/acme/keys/site"
)


def fabric() -> Topology:
    wiring = {
        "name": "acme-prod",
        "planes": ["A", "osprey-west"],
        "nodes": [
            {"name": n, "rack": RACK, "gpu_model": "b300", "gpus": 2, "nics": 2, "ports_per_nic": 2, "psus": 2,
             "psu_watts": 3000, "label": "Fulton county"}
            for n in NODES
        ],
        "switches": [
            {"name": name, "tier": "leaf", "plane": plane, "model": "sn5600"}
            for name, plane in zip(LEAVES, ["A", "osprey-west"], strict=True)
        ],
        "links": [
            {"a": f"{n}/nic{k}/p{p}", "b": f"{leaf}/p{i * 2 + k}", "speed": "400G"}
            for i, n in enumerate(NODES)
            for k in range(2)
            for p, leaf in enumerate(LEAVES)
        ],
        "domains": [
            {"name": DOMAIN, "gpus": [f"{n}/gpu{g}" for n in NODES for g in range(2)],
             "switches": [f"{DOMAIN}/nvsw0"], "links_per_gpu": 2, "speed": "50GB/s"}
        ],
        "racks": [{"name": RACK, "feeds": [{"name": f"{RACK}/feedPDU-Fulton", "watts": 9000}], "redundancy": "none"}],
        "jobs": [{"name": JOB, "nodes": NODES, "collective": "allreduce"}],
    }  # fmt: skip
    return read_wiring(Document("named", json.dumps(wiring)))


def frames(seconds: int = 50) -> Iterator[Frame]:
    """Lost: a leaf from 10 s to 18 s, a link in announced work from 22 s, a supply from 30 s, a source from 35 s."""
    ports: dict[str, list[str]] = {}
    for name in fabric().port_names:
        ports.setdefault(name.split("/")[0], []).append(name)
    for second in range(seconds):
        for k, (owner, names) in enumerate(ports.items()):
            if owner == NODES[2] and second >= 35:
                continue
            time = T0 + second * NS + k * 1_234_000
            source = f"{owner}:acme-reader" if owner == NODES[1] else owner
            up = np.array([float(_up(second, name)) for name in names])
            sent = np.array([second * 10**10 * int(u) for u in up], np.uint64)
            yield Frame(time, source, "port", tuple(names), {"up": up, "tx_bytes": sent})
            if owner in NODES:
                supplies = (f"{owner}/psu0", f"{owner}/psu1")
                states = np.array([1.0, float(not (owner == NODES[0] and second >= 30))])
                yield Frame(time, source, "psu", supplies, {"up": states, "output_watts": states * 1500})
        strange = ("strange-box/gpu0",)
        yield Frame(
            T0 + second * NS, "prometheus:prom.acme.example:9090", "gpu", strange, {"power_watts": np.ones(1)}
        )


def _up(second: int, port: str) -> bool:
    plane = port.startswith(LEAVES[1]) or (port.endswith("/p1") and "/nic" in port)
    work = port in (f"{NODES[3]}/nic0/p0", f"{LEAVES[0]}/p6")
    return not (plane and 10 <= second < 18) and not (work and 22 <= second < 30)


def record(path: Path, seconds: int = 50, speak: bool = True) -> Twin:
    """Records while a twin watches and, where they do, people speak; returns that twin."""
    from twin.detectors.rules import Rules
    from twin.maintenance import windows

    topology = fabric()
    twin = Twin(topology, Rules.load(SITE["rules"]), windows(topology, SITE["maintenance"]))  # type: ignore[arg-type]
    said = 0
    with Recorder(path, topology, SITE, live=False) as out:
        for frame in frames(seconds):
            for event in twin.events[said:]:
                out.event(event)
            said = len(twin.events)
            out.write(frame)
            twin.ingest(frame)
            critical = [i for i in twin.incidents if i.is_open and i.kind == "switch_down" and not i.acknowledged]
            if speak and critical:
                twin.acknowledge(critical[0].id, "Jane Doe", T0 + 3600 * NS)
        out.note(Note(T0 + 15 * NS, REMARK, "Jane Doe"))
    twin.finish()
    return twin
