"""Telegraf's JSON, and what its measurements become here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from collectors.mqtt import lineprotocol, telegraf
from collectors.mqtt.inbox import Message
from collectors.mqtt.mapping import Parse, RecordReader
from collectors.mqtt.profile import SHIPPED, load_profiles
from collectors.mqtt.record import Record
from collectors.portnames import PortNames
from twin.errors import InputError
from twin.frames import NS, Frame, as_float
from twin.topology.presets import preset

NOW = 1_764_547_200 * NS
TOPOLOGY = preset("b300-superpod-ethernet")
ONE_PORT = preset("hgx-h100")


def reader(parse: Parse, *profiles: str, **options: Any) -> RecordReader:
    topology = options.pop("topology", TOPOLOGY)
    names, ports = options.pop("names", {}), PortNames(topology, options.pop("ports", {}))
    return RecordReader(parse, load_profiles(profiles, Path()), ports, topology, names)


def line(text: str) -> Message:
    return Message("telegraf/x", text.encode())


def values(frames: list[Frame]) -> dict[tuple[str, str], dict[str, float]]:
    """(source, address) -> metric -> value, unknown ones left out."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for frame in frames:
        for metric, column in frame.columns.items():
            for name, value in zip(frame.names, as_float(column).tolist(), strict=True):
                row = found.setdefault((frame.source, name), {})
                if value == value:
                    row[metric] = value
    return found


def metric(name: str = "net", time: Any = 1764547200, tags: Any = None, **fields: Any) -> dict[str, Any]:
    return {"name": name, "tags": {"host": "n000"} if tags is None else tags, "fields": fields, "timestamp": time}


def test_one_metric_and_a_batch_are_read_exactly() -> None:
    one, two = metric(a=2**64 - 1, b=1.5, c=True, d="x"), metric("cpu", 1764547201, tags={}, e=None)
    first = Record("net", {"host": "n000"}, {"a": 2**64 - 1, "b": 1.5, "c": True, "d": "x"}, NOW)
    second = Record("cpu", {}, {"e": None}, NOW + NS)
    assert telegraf.parse(json.dumps(one).encode()) == ([first], [])
    assert telegraf.parse(json.dumps({"metrics": [one, two]}).encode()) == ([first, second], [])


@pytest.mark.parametrize(
    ("stamp", "time"),
    [
        (1764547200, NOW), (1764547200123, NOW + 123_000_000), (1764547200123456, NOW + 123_456_000),
        (1764547200123456789, NOW + 123_456_789), (1764547200.5, NOW + NS // 2), (None, None),
    ],
)  # fmt: skip
def test_the_unit_of_a_timestamp_is_told_by_its_size(stamp: Any, time: int | None) -> None:
    ((record,), _) = telegraf.parse(json.dumps(metric(time=stamp, a=1)).encode())
    assert record.time == time


def test_a_bad_metric_of_a_batch_is_told_and_the_others_are_read() -> None:
    bad = [{"name": "net"}, metric(time=-1, a=1), metric(time=2**70, a=1), metric(tags=[], a=1), 7]
    records, problems = telegraf.parse(json.dumps({"metrics": [*bad, metric(a=1)]}).encode())
    assert [r.fields for r in records] == [{"a": 1}]
    assert len(problems) == len(bad)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"{",
        b'{"name":"net","tags":{},"fields":{"a":1e999}}',
        b"[]",
        b"null",
        b'{"metrics": 3}',
        b"\xff",
        b'{"metrics": [}',
    ],
)
def test_what_is_not_telegrafs_json_is_one_problem(payload: bytes) -> None:
    records, problems = telegraf.parse(payload)
    assert records == [] and len(problems) == 1


def twice(read: RecordReader, text: str) -> list[Frame]:
    """A report a second apart: the first teaches which interfaces there are. TIME in the text becomes the time."""
    for second in (0, 1):
        assert read.take(line(text.replace("TIME", str(NOW + second * NS))), 0) == []
    return read.frames()


def test_interfaces_of_a_host_become_its_ports_in_one_frame() -> None:
    text = "\n".join(
        f"net,host=n000.example.com,interface={name} bytes_sent={i}000i,bytes_recv={i}001i,packets_sent={i}2i,"
        f"packets_recv={i}3i,drop_out={i}4i,err_in={i}5i,speed=-1i TIME"
        for i, name in enumerate(["rail0p0", "rail0p1", "lo", "all"], 1)
    )
    (frame,) = twice(reader(lineprotocol.parse, "net"), text)
    assert (frame.source, frame.time, frame.kind) == ("n000:net", NOW + NS, "port")
    assert frame.names == ("n000/nic0/p0", "n000/nic0/p1")
    assert {m: c.tolist() for m, c in frame.columns.items()} == {
        "tx_bytes": [1000, 2000], "rx_bytes": [1001, 2001], "tx_packets": [12, 22], "rx_packets": [13, 23],
        "tx_discards": [14, 24], "rx_errors": [15, 25],
    }  # fmt: skip
    assert all(c.dtype == np.uint64 for c in frame.columns.values())


def test_ethtool_tells_links_and_what_went_over_the_wire_and_a_down_port_has_no_speed() -> None:
    pauses = ",".join(f"rx_prio{i}_pause_duration={i * 250000}i" for i in range(8))
    text = (
        "ethtool,host=n000,interface=rail0p0 link=1i,speed=400000i,tx_bytes_phy=5i,link_down_events_phy=2i,"
        f"{pauses} TIME\n"
        "ethtool,host=n000,interface=rail0p1 link=0i,interface_up=1i,speed=4294967295i,tx_bytes_phy=6i TIME\n"
        "ethtool,host=n000,interface=rail1p0 link=0i,speed=100000i TIME"
    )
    found = values(twice(reader(lineprotocol.parse, "ethtool"), text))
    source = "n000:ethtool"
    assert found == {
        (source, "n000/nic0/p0"): {
            "up": 1, "speed_bits_per_second": 400e9, "tx_bytes": 5, "link_downed": 2, "rx_pause_seconds": 7.0,
        },
        (source, "n000/nic0/p1"): {"up": 0, "tx_bytes": 6},
        (source, "n000/nic1/p0"): {"up": 0},
    }  # fmt: skip


def test_infiniband_data_is_in_words_and_its_two_records_a_port_are_one_reading() -> None:
    host = ONE_PORT.nodes.name[0]
    one = f"infiniband,device=mlx5_3,host={host},port=1"
    text = (
        f"{one} port_xmit_data={2**61}i,port_rcv_data=100i,link_downed=1i TIME\n"
        f"{one} packet_seq_err=1i,local_ack_timeout_err=2i,roce_adp_retrans=3i TIME\n"
        f"infiniband,device=mlx5_bond_0,host={host},port=1 port_rcv_data=7i TIME\n"
        f"infiniband,device=mlx5_3,host={host},port=2 port_rcv_data=9i TIME"
    )
    frames = twice(reader(lineprotocol.parse, "infiniband", topology=ONE_PORT), text)
    assert values(frames)[f"{host}:infiniband", f"{host}/nic3/p0"] == {
        "tx_bytes": 2**63, "rx_bytes": 400, "link_downed": 1, "retransmitted_packets": 6,
    }  # fmt: skip
    assert [f.names for f in frames] == [(f"{host}/nic3/p0",)]


def test_gpus_are_numbered_by_index_unless_the_site_maps_their_uuid() -> None:
    batch = [
        metric(
            "nvidia_smi", tags={"host": "gpu-17.example", "index": i, "uuid": f"GPU-{i}"},
            utilization_gpu=50, memory_used=1, temperature_gpu=61, power_draw=512.5, clocks_current_sm=1980,
        )
        for i in ("0", "1", "9", "{x}")
    ]  # fmt: skip
    read = reader(telegraf.parse, "nvidia_smi", names={"gpu-17.example": "n003", "GPU-1": "n003/gpu7"})
    assert read.take(Message("t", json.dumps({"metrics": batch}).encode()), 0) == []
    (frame,) = read.frames()
    assert (frame.source, frame.names) == ("n003:nvidia_smi", ("n003/gpu0", "n003/gpu7"))
    assert {m: c.tolist()[0] for m, c in frame.columns.items()} == {
        "utilization_ratio": 0.5, "memory_used_bytes": 2**20, "temperature_celsius": 61, "power_watts": 512.5,
        "sm_clock_hertz": 1.98e9,
    }  # fmt: skip


def test_switches_come_by_snmp_under_their_own_name_and_are_placed_when_all_their_ports_are_known() -> None:
    read = reader(lineprotocol.parse, "snmp")
    states = {1: "1i", 2: "2i", 3: "7i", 4: "4i", 5: '"up"'}
    switch = TOPOLOGY.switches.name[0]

    def report(second: int, ports: range) -> str:
        return "\n".join(
            f"interface,agent_host=10.0.0.1,host=poller,source={switch},ifName=swp{i} "
            f"ifOperStatus={states.get(i, '1i')},ifHighSpeed=400000i,ifHCInOctets={i}i,ifInOctets=9i "
            f"{NOW + second * NS}"
            for i in ports
        )

    read.take(line(report(0, range(1, 64))), 0)
    read.take(line(report(0, range(64, 129))), 0)
    assert read.frames() == [], "until a port comes round again not all are known"
    read.take(line(report(1, range(1, 129))), 0)
    found = values(read.frames())
    assert len(found) == 128
    one = found[f"{switch}:snmp", f"{switch}/p0"]
    assert one == {"up": 1, "speed_bits_per_second": 400e9, "rx_bytes": 1}
    assert found[f"{switch}:snmp", f"{switch}/p1"] == {"up": 0, "rx_bytes": 2}
    assert found[f"{switch}:snmp", f"{switch}/p2"] == {"up": 0, "rx_bytes": 3}
    assert "up" not in found[f"{switch}:snmp", f"{switch}/p3"], "status 4 is unknown"
    assert found[f"{switch}:snmp", f"{switch}/p4"]["up"] == 1


def test_where_two_inputs_give_one_metric_the_wire_has_the_word_and_each_gives_the_rest() -> None:
    text = (
        "net,host=n000,interface=rail0p0 bytes_sent=1i,bytes_recv=2i TIME\n"
        "ethtool,host=n000,interface=rail0p0 tx_bytes_phy=1000i TIME\n"
        "net,host=n000,interface=rail0p1 bytes_sent=3i TIME"
    )
    assert values(twice(reader(lineprotocol.parse), text)) == {
        ("n000:net", "n000/nic0/p0"): {"rx_bytes": 2},
        ("n000:net", "n000/nic0/p1"): {"tx_bytes": 3},
        ("n000:ethtool", "n000/nic0/p0"): {"tx_bytes": 1000},
    }


def test_strange_devices_and_interfaces_are_told() -> None:
    read = reader(lineprotocol.parse, "net")
    frames = twice(
        read, "net,host=web1,interface=eth0 bytes_sent=1i TIME\nnet,host=n000,interface=eth9 bytes_sent=1i TIME"
    )
    assert frames == []
    assert read.warnings() == [
        "1 devices are not in the wiring (web1); say under names what the wiring calls them",
        "no interface of n000 is a port of the wiring (eth9); say under ports which is",
    ]
    mapped = reader(lineprotocol.parse, "net", names={"web1": "n001"}, ports={"*": {"eth0": "nic0/p0"}})
    (frame,) = twice(mapped, "net,host=web1,interface=eth0 bytes_sent=1i TIME")
    assert frame.names == ("n001/nic0/p0",)


@pytest.mark.parametrize("given_", ["null", "-1", '"12"', "1e300", "1.5", "18446744073709551615", "{}"])
def test_a_counter_that_is_no_whole_number_is_unknown(given_: str) -> None:
    read = reader(telegraf.parse, "net")
    for second in (0, 1):
        text = json.dumps(
            metric(time=1764547200 + second, tags={"host": "n000", "interface": "rail0p0"}, bytes_sent=0)
        )
        read.take(Message("t", text.replace('"bytes_sent": 0', f'"bytes_sent": {given_}, "err_in": 3').encode()), 0)
    assert values(read.frames()) == {("n000:net", "n000/nic0/p0"): {"rx_errors": 3}}


def test_every_shipped_profile_loads_and_a_wrong_one_is_told_with_every_mistake(tmp_path: Path) -> None:
    assert [p.name for p in load_profiles([], tmp_path)] == list(SHIPPED)
    (tmp_path / "own.toml").write_text(
        'measurement = "x"\nkind = "port"\ndevice = "host"\n'
        '[metrics]\ntx_bytes = {field = "a", scale = -1}\nup = {}\n'
    )
    with pytest.raises(InputError) as refused:
        load_profiles(["own.toml"], tmp_path)
    assert len(refused.value.problems) == 2 and all("own.toml: metrics: " in p for p in refused.value.problems)
    for text, told in (("x =", "not TOML"), ('measurement = "x"\nkind = "psu"\ndevice = "h"\ninterface = "i"\n'
                        '[metrics]\nup = {field = "a"}', "expected `interface` for ports")):  # fmt: skip
        (tmp_path / "own.toml").write_text(text)
        with pytest.raises(InputError, match=told):
            load_profiles(["own.toml"], tmp_path)
    with pytest.raises(InputError, match=r"none\.toml cannot be read"):
        load_profiles(["none.toml"], tmp_path)
