"""Switches that stream over real connections: what comes of it, and what is said when nothing does."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc.aio
import numpy as np
import pygnmi.spec.v080.gnmi_pb2 as pb
import pytest
import yaml

from collectors.base import CollectorError, Sample
from collectors.build import build
from collectors.gnmi.collector import GnmiCollector
from tests.rigs.gnmi import Certificates, Port, Switch, arista, path, sonic, tree
from tests.rigs.watch import Watch
from twin.errors import InputError
from twin.frames import UNKNOWN_U64, Frame
from twin.site import load_site
from twin.snapshot import UNKNOWN, UP
from twin.topology.resolve import resolve

LEAF = "A-leaf-0"
BIG = 2**60 + 1
COUNTERS = {
    "in-octets": BIG,
    "out-octets": 5,
    "in-pkts": 3,
    "out-pkts": 4,
    "out-discards": 1,
    "carrier-transitions": 4,
}


def lanes(ports: int = 8, **more: Any) -> dict[str, Port]:
    """As SONiC names them: by their first lane."""
    return {f"Ethernet{4 * i}": Port(counters=dict(COUNTERS), **more) for i in range(ports)}


def slots(ports: int = 8) -> dict[str, Port]:
    return {f"Ethernet{i}/1": Port(counters=dict(COUNTERS)) for i in range(1, ports + 1)}


def site_file(tmp_path: Path, targets: dict[str, str], size: int = 8, **options: Any) -> Path:
    """A leaf (or two) with one host on each port from p1, and its switches by gNMI."""
    switches = [{"name": name, "tier": "leaf", "plane": name[0]} for name in targets]
    planes = [name[0] for name in targets]
    wiring = {
        "name": "t",
        "planes": planes,
        "nodes": [{"name": f"n{i}", "gpus": 1, "nics": 1, "ports_per_nic": len(planes)} for i in range(size)],
        "switches": switches,
        "links": [
            {"a": f"n{i}/nic0/p{k}", "b": f"{name}/p{i + 1}", "speed": "400G"}
            for k, name in enumerate(targets)
            for i in range(size)
        ],
    }
    (tmp_path / "wiring.yaml").write_text(yaml.safe_dump(wiring))
    spec = {"targets": targets, "every": "200ms", "deadline": "3s", **options}
    site = tmp_path / "site.yaml"
    site.write_text(
        yaml.safe_dump({"name": "rig", "topology": {"file": "wiring.yaml"}, "collectors": [{"gnmi": spec}]})
    )
    return site


def collector(tmp_path: Path, address: str, size: int = 8, **options: Any) -> GnmiCollector:
    (made,) = build(load_site(site_file(tmp_path, {LEAF: address}, size, **options)))
    assert isinstance(made, GnmiCollector)
    return made


def told(sample: Sample) -> dict[str, dict[str, float | int]]:
    """What the frames of a sample say of each port, without what is unknown."""
    out: dict[str, dict[str, float | int]] = {}
    for frame in sample.frames:
        for metric, values in frame.columns.items():
            for name, v in zip(frame.names, values.tolist(), strict=True):
                if v == v and v != int(UNKNOWN_U64):
                    out.setdefault(name, {})[metric] = v
    return out


@contextlib.asynccontextmanager
async def closing(made: GnmiCollector) -> AsyncIterator[GnmiCollector]:
    try:
        yield made
    finally:
        await made.close()


async def run(*command: str) -> tuple[int | None, str, str]:
    """Exit code, stdout and stderr."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    return process.returncode, out.decode(), err.decode()


async def failure(made: GnmiCollector) -> str:
    """The one line that a collection fails with."""
    async with closing(made):
        with pytest.raises(CollectorError) as caught:
            async with asyncio.timeout(made.deadline):
                await made.collect()
    text = str(caught.value)
    assert text.startswith(f"gnmi:{LEAF} (") and "\n" not in text
    return text


MEANS = {
    "rx_bytes": BIG, "tx_bytes": 5, "rx_packets": 3, "tx_packets": 4, "tx_discards": 1, "link_downed": 2,
    "up": 1.0, "speed_bits_per_second": 400e9,
}  # fmt: skip


# --- values ---


@pytest.mark.parametrize(
    ("make", "ports", "encodings"),
    [
        (sonic, lanes(), ("JSON", "JSON_IETF")),
        (arista, slots(), ("JSON", "PROTO")),
        (tree, lanes(), ("JSON_IETF",)),
    ],
    ids=["sonic", "arista", "tree"],
)
async def test_a_switch_of_every_habit_is_read_to_the_last_digit(
    tmp_path: Path, make: Any, ports: dict[str, Port], encodings: tuple[str, ...]
) -> None:
    names = list(ports)
    ports[names[1]].status, ports[names[2]].status = "LOWER_LAYER_DOWN", "UNKNOWN"
    async with (
        Switch(make, ports, encodings=encodings) as switch,
        closing(collector(tmp_path, switch.address)) as made,
    ):
        sample = await made.collect()
        assert pb.Encoding.Name(switch.requests[0].subscribe.encoding) == encodings[-1]
    found = told(sample)
    assert not sample.warnings and set(found) == {f"{LEAF}/p{i}" for i in range(1, 9)}
    assert found[f"{LEAF}/p1"] == found[f"{LEAF}/p8"] == MEANS
    state = {"up", "speed_bits_per_second"}
    assert found[f"{LEAF}/p2"] == {m: v for m, v in MEANS.items() if m not in state} | {"up": 0.0}
    assert found[f"{LEAF}/p3"] == {m: v for m, v in MEANS.items() if m not in state}
    counters, states = sample.frames
    assert counters.columns["rx_bytes"].dtype == np.uint64 and set(states.columns) == state
    assert counters.time <= states.time


async def test_changes_are_told_when_they_happen_and_counters_when_they_are_sampled(tmp_path: Path) -> None:
    ports = slots()
    async with Switch(arista, ports) as switch, closing(collector(tmp_path, switch.address, every="30s")) as made:
        await made.collect()
        ports["Ethernet3/1"].status = "DOWN"
        waiting = asyncio.create_task(made.collect())
        await asyncio.sleep(0.05)
        await switch.tell()
        async with asyncio.timeout(10):  # far less than the interval
            sample = await waiting
    assert {n for n, values in told(sample).items() if values["up"] == 0} == {f"{LEAF}/p3"}
    asked = {one.path.elem[-1].name: one for one in switch.requests[0].subscribe.subscription}
    assert asked["counters"].sample_interval == 30_000_000_000
    assert asked["oper-status"].mode == pb.ON_CHANGE


async def test_a_port_whose_counters_did_not_come_is_not_told_anew(tmp_path: Path) -> None:
    async with Switch(arista, slots()) as switch, closing(collector(tmp_path, switch.address, every="30s")) as made:
        await made.collect()
        switch.ports = {"Ethernet5/1": Port(counters={"in-octets": 7})}
        await switch.tell()
        counters, states = (await made.collect()).frames
    assert counters.names == (f"{LEAF}/p5",) and len(states.names) == 8


@pytest.mark.parametrize(
    ("refuses", "paths", "modes"),
    [
        (
            ["fec/state", "negotiated-port-speed"],
            ["counters", "oper-status", "port-speed"],
            {pb.SAMPLE, pb.ON_CHANGE},
        ),
        (["ON_CHANGE"], ["counters", "oper-status", "port-speed"], {pb.SAMPLE}),
        (["ON_CHANGE", "port-speed"], ["counters", "oper-status"], {pb.SAMPLE}),
    ],
)
async def test_a_switch_that_refuses_a_part_is_asked_for_less(
    tmp_path: Path, refuses: list[str], paths: list[str], modes: set[int]
) -> None:
    async with (
        Switch(sonic, lanes(), refuses=refuses) as switch,
        closing(collector(tmp_path, switch.address)) as made,
    ):
        first = told(await made.collect())
        switch.ports["Ethernet0"].status = "DOWN"
        await switch.tell()
        async with asyncio.timeout(10):
            while told(await made.collect()).get(f"{LEAF}/p1", {}).get("up") != 0:
                pass
    assert first[f"{LEAF}/p1"]["up"] == 1
    asked = switch.requests[-1].subscribe.subscription
    assert [one.path.elem[-1].name for one in asked] == paths and {one.mode for one in asked} == modes


async def test_what_is_deleted_becomes_unknown(tmp_path: Path) -> None:
    async with Switch(arista, slots()) as switch:
        gone = pb.Notification(timestamp=time.time_ns())
        gone.delete.add().CopyFrom(path("interfaces/interface[Ethernet2/1]"))
        switch.extra.append(pb.SubscribeResponse(update=gone))
        async with closing(collector(tmp_path, switch.address, every="30s")) as made:
            found = told(await made.collect())
    assert f"{LEAF}/p2" not in found and found[f"{LEAF}/p1"] == MEANS


@pytest.mark.parametrize("late_sync", [True, False])
async def test_no_port_is_told_before_all_interfaces_have_been_named(tmp_path: Path, late_sync: bool) -> None:
    """Ethernet0 and Ethernet8 alone would be read as neighbours."""
    order = sorted(range(8), key=lambda i: i % 2)
    ports = {f"Ethernet{4 * i}": Port(counters={"in-octets": i}) for i in order}
    async with (
        Switch(sonic, ports, late_sync=late_sync, pause=0.05) as switch,
        closing(collector(tmp_path, switch.address)) as made,
    ):
        found = told(await made.collect())
    assert {name: values["rx_bytes"] for name, values in found.items()} == {f"{LEAF}/p{i + 1}": i for i in range(8)}


async def test_what_a_switch_no_longer_says_after_a_restart_is_unknown(tmp_path: Path) -> None:
    async with Switch(arista, slots()) as switch, closing(collector(tmp_path, switch.address)) as made:
        await made.collect()
        await switch.kill()
        del switch.ports["Ethernet2/1"]
        await switch.start()
        sample = await made.collect()
    assert f"{LEAF}/p2" in sample.frames[-1].names and f"{LEAF}/p2" not in told(sample)
    assert told(sample)[f"{LEAF}/p1"] == MEANS


async def test_a_switch_that_ends_the_stream_when_all_was_said_is_asked_again(tmp_path: Path) -> None:
    async with Switch(arista, slots(), once=True) as switch, closing(collector(tmp_path, switch.address)) as made:
        for _ in range(3):
            assert len(told(await made.collect())) == 8
        assert len(switch.requests) == 3


@pytest.mark.parametrize("ahead", [0.0, 7200.0, -86400.0])
async def test_rates_are_those_of_the_switch_whatever_its_clock_says(tmp_path: Path, ahead: float) -> None:
    rate = 1e9
    async with (
        Switch(arista, {n: Port(counters={"in-octets": 1}, rate=rate) for n in slots()}, ahead=ahead) as switch,
        closing(collector(tmp_path, switch.address, every="500ms")) as made,
    ):
        frames: list[Frame] = []
        while len(frames) < 4:
            frames += [f for f in (await made.collect()).frames if "rx_bytes" in f.columns]
        assert abs(frames[-1].time - time.time_ns()) < 5e9
    first, last = frames[0], frames[-1]
    grown = (last.columns["rx_bytes"] - first.columns["rx_bytes"]).astype(float)
    measured = grown / ((last.time - first.time) / 1e9)
    assert measured == pytest.approx(rate, rel=0.2)  # by which a busy machine may be late


async def test_a_large_switch_is_read_in_batches_and_as_one_tree(tmp_path: Path) -> None:
    for make in (arista, tree):
        ports = {f"Ethernet{i}/1": Port(counters=dict(COUNTERS)) for i in range(1, 513)}
        async with (
            Switch(make, ports) as switch,
            closing(collector(tmp_path, switch.address, size=512, every="1s", deadline="20s")) as made,
        ):
            found = told(await made.collect())
        assert len(found) == 512 and all(values == MEANS for values in found.values())


async def test_ports_that_are_cabled_and_not_listed_are_a_warning(tmp_path: Path) -> None:
    async with Switch(arista, slots(6)) as switch, closing(collector(tmp_path, switch.address)) as made:
        sample = await made.collect()
    assert sample.warnings == ["2 cabled ports are not among its interfaces (A-leaf-0/p7, A-leaf-0/p8)"]


async def test_names_that_tell_nothing_are_placed_by_the_site_and_otherwise_an_error(tmp_path: Path) -> None:
    ports = {f"uplink-{c}": Port(counters=dict(COUNTERS)) for c in "abcdefgh"}
    async with Switch(arista, ports) as switch:
        text = await failure(collector(tmp_path, switch.address))
        assert "none of its 8 interfaces (uplink-a, uplink-b, uplink-c)" in text and "`ports`" in text
        async with closing(collector(tmp_path, switch.address, ports={"*": {"uplink-c": "p3"}})) as made:
            assert set(told(await made.collect())) == {f"{LEAF}/p3"}


# --- who may ---


async def test_name_and_password_go_in_both_ways_that_switches_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GNMI_PASSWORD", "s3cret")
    options = {"username": "monitor", "password": {"env": "GNMI_PASSWORD"}}
    async with Switch(arista, slots(), user=("monitor", "s3cret")) as switch:
        async with closing(collector(tmp_path, switch.address, **options)) as made:
            assert len(told(await made.collect())) == 8
        assert switch.metadata["authorization"] == "Basic bW9uaXRvcjpzM2NyZXQ="
        monkeypatch.setenv("GNMI_PASSWORD", "wrong")
        text = await failure(collector(tmp_path, switch.address, **options))
    assert text.endswith("it refuses username or password (authentication failed)") and "wrong" not in text


async def test_tls_takes_the_right_authority_and_name_and_no_other(tmp_path: Path) -> None:
    mine = Certificates(tmp_path / "mine", "leaf0.example")
    Certificates(tmp_path / "other", "leaf0.example")
    async with Switch(arista, slots(), tls=mine) as switch:
        trusted = {"ca": "mine/ca.pem", "server_name": "leaf0.example"}
        async with closing(collector(tmp_path, switch.address, tls=trusted)) as made:
            assert len(told(await made.collect())) == 8
        for wrong, says in (
            ({**trusted, "ca": "other/ca.pem"}, "its certificate is not accepted"),
            ({}, "its certificate is not accepted"),
            ({"ca": "mine/ca.pem"}, "its certificate is for another name; set tls.server_name"),
            ({"ca": "site.yaml"}, "cannot be used; expected PEM files"),
            (None, "does it want TLS, or a certificate of ours?"),
        ):
            assert says in await failure(collector(tmp_path, switch.address, tls=wrong))


async def test_insecure_takes_whatever_certificate_is_shown(tmp_path: Path) -> None:
    for name in ("leaf0.example", "127.0.0.1"):
        async with (
            Switch(arista, slots(), tls=Certificates(tmp_path / name, name)) as switch,
            closing(collector(tmp_path, switch.address, tls={"insecure": True})) as made,
        ):
            assert len(told(await made.collect())) == 8


async def test_a_switch_may_ask_for_our_certificate(tmp_path: Path) -> None:
    pki = Certificates(tmp_path / "pki", "127.0.0.1", ask_client=True)
    async with Switch(arista, slots(), tls=pki) as switch:
        tls = {"ca": "pki/ca.pem", "cert": "pki/client.pem", "key": "pki/client-key.pem"}
        async with closing(collector(tmp_path, switch.address, tls=tls)) as made:
            assert len(told(await made.collect())) == 8
        text = await failure(collector(tmp_path, switch.address, tls={"ca": "pki/ca.pem"}))
        assert "does it want TLS, or a certificate of ours?" in text


# --- what is said when there is nothing ---


async def test_a_port_where_nobody_listens_is_a_refused_connection(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        text = await failure(collector(tmp_path, address))
    assert text == f"gnmi:{LEAF} ({address}): no connection (Connection refused)"
    assert "no connection" in await failure(collector(tmp_path, address, tls={"insecure": True}))


async def test_a_switch_that_accepts_and_says_nothing_is_given_up_at_the_deadline(tmp_path: Path) -> None:
    async with Switch(arista, slots(), silent=True) as switch:
        text = await failure(collector(tmp_path, switch.address, deadline="500ms"))
    assert text.endswith("no values within 0.45 s")


async def test_a_switch_without_interfaces_is_given_up_at_the_deadline(tmp_path: Path) -> None:
    async with Switch(arista, {}) as switch:
        text = await failure(collector(tmp_path, switch.address, deadline="500ms"))
    assert text.endswith("no values within 0.45 s")


async def test_other_servers_are_told_to_be_no_gnmi_servers(tmp_path: Path) -> None:
    server = grpc.aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    text = await failure(collector(tmp_path, f"127.0.0.1:{port}"))
    await server.stop(None)
    assert "it is no gNMI server" in text

    async def web(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(web, "127.0.0.1", 0) as http:
        address = f"127.0.0.1:{http.sockets[0].getsockname()[1]}"
        for tls, says in (
            (None, "what answers there is no gRPC server"),
            ({}, "it speaks no TLS on this port"),
            ({"insecure": True}, "no certificate can be had from it"),
        ):
            assert says in await failure(collector(tmp_path, address, tls=tls))


async def test_a_stream_that_falls_silent_is_taken_for_dead(tmp_path: Path) -> None:
    async with (
        Switch(arista, slots()) as switch,
        closing(collector(tmp_path, switch.address, every="50ms", deadline="1s")) as made,
    ):
        await made.collect()
        switch.make = lambda *_: iter(())
        warned = False
        with pytest.raises(CollectorError, match="nothing heard for 1 s, though subscribed"):
            async with asyncio.timeout(20):
                while True:
                    sample = await made.collect()
                    warned |= any("nothing new from it" in w and not sample.frames for w in sample.warnings)
        assert warned
        switch.make = arista
        assert len(told(await made.collect())) == 8


async def test_messages_that_are_none_are_passed_over_and_counted(tmp_path: Path) -> None:
    async with Switch(arista, slots()) as switch:
        broken = pb.Notification()
        broken.update.add(path=path("interfaces"), val=pb.TypedValue(bytes_val=b"\xff"))
        raw = pb.SubscribeResponse(update=broken).SerializeToString().replace(b"\x2a\x01\xff", b"\x0a\x01\xff")
        switch.extra.append(raw)  # text that is not UTF-8
        async with closing(collector(tmp_path, switch.address)) as made:
            sample = await made.collect()
            if not sample.warnings:
                sample = await made.collect()
    assert list(sample.warnings) == ["1 messages could not be read"] and len(told(sample)) == 8


# --- site files ---


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"targets": {"X": "h:1"}}, "collectors: gnmi: 'X' is no switch in the wiring of t"),
        ({"targets": {LEAF: "h"}}, "collectors: gnmi: A-leaf-0: 'h': expected host:port, such as 10.0.0.1:57400"),
        ({"targets": {LEAF: "h:99999"}}, "collectors: gnmi: A-leaf-0: 'h:99999': expected host:port"),
        ({"username": "a"}, "username and password belong together"),
        ({"username": "ä", "password": {"file": "site.yaml"}}, "printable ASCII"),
        ({"tls": {"ca": "none.pem"}}, "tls: ca: "),
        ({"tls": {"cert": "site.yaml"}}, "cert and key belong together"),
        ({"tls": {"insecure": True, "ca": "site.yaml"}}, "ca has no use"),
    ],
)
def test_mistakes_of_a_site_are_told_before_anything_is_opened(
    tmp_path: Path, options: dict[str, Any], says: str
) -> None:
    site = site_file(tmp_path, {LEAF: "127.0.0.1:1"})
    whole = yaml.safe_load(site.read_text())
    whole["collectors"][0]["gnmi"] |= options
    site.write_text(yaml.safe_dump(whole))
    with pytest.raises(InputError) as caught:
        build(load_site(site))
    assert says in str(caught.value)


@pytest.mark.parametrize(("library", "module"), [("grpcio", "grpc"), ("protobuf", "google.protobuf")])
async def test_an_absent_library_ends_check_with_one_line_and_3(tmp_path: Path, library: str, module: str) -> None:
    site = site_file(tmp_path, {LEAF: "127.0.0.1:1"})
    without = f"import sys; sys.modules['{module}'] = None; from tui.main import main; main()"
    code, out, err = await run(sys.executable, "-c", without, "check", str(site))
    assert (code, out, err.count("\n")) == (3, "", 1)
    assert f"{library} not installed" in err and "pip install 'fabrictwin[gnmi]'" in err


# --- under the twin ---


async def test_a_switch_that_restarts_is_a_gap_and_a_link_that_goes_down_is_found(tmp_path: Path) -> None:
    ports = {n: Port(counters=dict(COUNTERS), rate=1e9) for n in slots()}
    async with Switch(sonic, ports) as switch, Switch(sonic, slots()) as other:
        watch = Watch(site_file(tmp_path, {LEAF: switch.address, "B-leaf-0": other.address}, every="500ms"))
        twin = watch.live.twin
        row = twin.topology.rows("port")[f"{LEAF}/p2"]

        def rate() -> float:
            return float(twin.snapshot().port.get("rx_bytes", np.full(row + 1, np.nan))[row])

        async with watch.live:
            task = asyncio.create_task(watch.run())
            await watch.until(lambda: rate() == pytest.approx(1e9, rel=0.1), "a rate")
            assert watch.open_() == []
            await switch.kill()
            failed = ("collector_failed", f"gnmi:{LEAF}")
            await watch.until(lambda: failed in watch.open_(), "collector_failed")
            ports["Ethernet3/1"].status = "DOWN"  # while nobody could see it
            await switch.start()
            down = ("link_down", "n2/nic0/p0")
            await watch.until(lambda: watch.open_() == [down], "one link_down")
            await watch.until(lambda: rate() == pytest.approx(1e9, rel=0.1), "the same rate again")
            ports["Ethernet3/1"].status = "UP"
            await switch.tell()
            await watch.until(lambda: watch.open_() == [], "the end of link_down")
            kinds = {i.kind for i in watch.incidents}
            assert {"collector_failed", "link_down"} <= kinds <= {"collector_failed", "link_down", "telemetry_stale"}
            assert {i.cause for i in watch.incidents if i.kind == "link_down"} == {"n2/nic0/p0"}
            assert all(h.ok for h in watch.live.health())
            await watch.live.close()
            await task


async def test_a_dead_target_is_unknown_and_a_state_that_was_sent_on_change_is_current(tmp_path: Path) -> None:
    """oper-status comes once, when it changes; counters come every sample (gnmic issue 513)."""
    async with Switch(sonic, lanes()) as alive, Switch(sonic, lanes()) as dead:
        watch = Watch(site_file(tmp_path, {LEAF: alive.address, "B-leaf-0": dead.address}, every="500ms"))
        twin = watch.live.twin
        mine, others = (resolve(twin.topology, name).links for name in (LEAF, "B-leaf-0"))

        def states(links: np.ndarray) -> set[int]:
            return set(twin.snapshot().link_state[links].tolist())

        async with watch.live:
            task = asyncio.create_task(watch.run())
            await watch.until(lambda: states(mine) == states(others) == {UP}, "both switches' ports")
            await dead.kill()
            await watch.until(lambda: states(others) == {UNKNOWN}, "ports that nobody reads")
            assert states(mine) == {UP}
            assert watch.open_() == [("collector_failed", "gnmi:B-leaf-0")]
            await watch.live.close()
            await task


async def test_check_says_one_verdict_and_the_library_says_nothing(tmp_path: Path) -> None:
    async with Switch(sonic, lanes()) as switch:
        site = site_file(tmp_path, {LEAF: switch.address})
        checking = asyncio.create_task(
            run(sys.executable, "-m", "tui.main", "check", str(site), "--for", "3s", "--json")
        )
        async with asyncio.timeout(60):
            while not switch.requests:
                await asyncio.sleep(0.05)
        await switch.kill()  # in the middle of a stream: gRPC's core would write of it
        await switch.start()
        code, out, err = await checking
    assert (code, err) == (0, "")
    verdict = json.loads(out)
    assert (verdict["status"], verdict["incidents"], verdict["planes"][0]["known_fraction"]) == ("healthy", [], 1)
    assert len(switch.requests) == 2
