"""A port of several planes shows as the fraction it is, and never as more or less than is known."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sysfs_tree import Tree, ib_port, rows, write
from test_rdma import GUID, LOGICAL, PLANE, device, logical, planes, with_guid

from collectors.infiniband_sysfs import InfinibandCollector
from collectors.own_ports import own_ports
from collectors.rdma_port import add_planes
from collectors.sysfs import Files, Value
from twin.topology.wiring import read_wiring
from twin.twin import Twin
from twin.yamlfile import Document

PORT = "n0/nic0/p0"
GB = 1e9
COUNTERS = {
    "port_xmit_data": "100", "port_rcv_data": "200", "port_xmit_packets": "1", "port_rcv_packets": "2",
    "port_xmit_discards": "3", "port_rcv_errors": "4", "symbol_error": "5", "link_downed": "6", "port_xmit_wait": "7",
}  # fmt: skip
NO_LINK = ("10 Gb/sec (4X SDR)\n", "2.5 Gb/sec (1X SDR)", "10 Gb/sec (4X)")  # what the kernel prints for "not told"


def tree(
    root: Path, rates: dict[int, str | None] | None = None, logical_port: Tree | None = None, **files: str
) -> None:
    """One port of four planes; `rates` in place of 200 Gb/s, `files` for all planes."""
    four = [ib_port(rate=(rates or {}).get(n, "200 Gb/sec (1X XDR)"), **files) for n in range(1, 5)]
    port = logical_port or ib_port(rate="800 Gb/sec (4X XDR)")
    devices = {
        "mlx5_0": device(with_guid(port, GUID, LOGICAL)),
        "smi1": device(*[with_guid(plane, GUID, PLANE) for plane in four]),
    }
    write(root / "class/infiniband", devices)


def collector(root: Path) -> InfinibandCollector:
    return InfinibandCollector({("mlx5_0", 1): PORT}, root=root, clock=lambda: 1_764_547_200_000_000_000)


async def one(root: Path) -> dict[str, float]:
    return rows(await collector(root).collect())[PORT]


async def test_a_whole_port_has_its_whole_speed_and_is_listed_once(tmp_path: Path) -> None:
    tree(tmp_path)
    sample = await collector(tmp_path).collect()
    assert rows(sample) == {PORT: rows(sample)[PORT]}
    assert (rows(sample)[PORT]["up"], rows(sample)[PORT]["speed_bits_per_second"]) == (1, 800 * GB)
    assert not sample.warnings
    own = own_ports("n0", root=tmp_path)
    assert own.infiniband == {("mlx5_0", 1): PORT}


@pytest.mark.parametrize("gone", NO_LINK)
@pytest.mark.parametrize(("lost", "left"), [((1,), 600), ((2, 4), 400), ((1, 2, 3), 200)])
async def test_a_port_that_lost_planes_is_up_with_the_speed_of_the_rest(
    tmp_path: Path, gone: str, lost: tuple[int, ...], left: int
) -> None:
    tree(tmp_path, dict.fromkeys(lost, gone))
    values = await one(tmp_path)
    assert (values["up"], values["speed_bits_per_second"]) == (1, left * GB)


async def test_a_plane_that_says_it_is_down_counts_for_nothing_whatever_its_rate(tmp_path: Path) -> None:
    tree(tmp_path)
    write(tmp_path / "class/infiniband/smi1/ports/3", {"state": "1: DOWN", "phys_state": "2: Polling"})
    assert (await one(tmp_path))["speed_bits_per_second"] == 600 * GB


async def test_a_slow_plane_counts_for_what_it_has(tmp_path: Path) -> None:
    tree(tmp_path, {2: "100 Gb/sec (1X NDR)"})
    assert (await one(tmp_path))["speed_bits_per_second"] == 700 * GB


async def test_where_the_driver_tells_planes_not_apart_the_port_is_not_called_slow(tmp_path: Path) -> None:
    tree(tmp_path, dict.fromkeys(range(1, 5), NO_LINK[0]))
    assert (await one(tmp_path))["speed_bits_per_second"] == 800 * GB
    tree(tmp_path, dict.fromkeys(range(1, 5), "800 Gb/sec (4X XDR)"))
    assert (await one(tmp_path))["speed_bits_per_second"] == 800 * GB, "the rate of the whole port at each plane"


async def test_the_slower_word_counts_where_the_logical_port_knows_better(tmp_path: Path) -> None:
    tree(tmp_path, logical_port=ib_port(rate="400 Gb/sec (4X NDR)"))
    assert (await one(tmp_path))["speed_bits_per_second"] == 400 * GB


async def test_a_port_that_is_down_has_no_speed_whatever_its_planes_say(tmp_path: Path) -> None:
    tree(tmp_path, logical_port=ib_port(state="1: DOWN", phys_state="2: Polling", rate="10 Gb/sec (4X SDR)"))
    values = await one(tmp_path)
    assert values["up"] == 0 and "speed_bits_per_second" not in values


async def test_while_a_plane_cannot_be_read_the_speed_is_unknown_and_neither_whole_nor_less(tmp_path: Path) -> None:
    tree(tmp_path, {1: NO_LINK[0]})
    watched = collector(tmp_path)
    assert rows(await watched.collect())[PORT]["speed_bits_per_second"] == 600 * GB
    smi = tmp_path / "class/infiniband/smi1"
    smi.rename(tmp_path / "elsewhere")
    sample = await watched.collect()
    assert rows(sample)[PORT]["up"] == 1 and "speed_bits_per_second" not in rows(sample)[PORT]
    assert len(sample.warnings) == 1 and "smi1" in sample.warnings[0] and sample.warnings[0].startswith(PORT)
    (tmp_path / "elsewhere").rename(smi)
    sample = await watched.collect()
    assert rows(sample)[PORT]["speed_bits_per_second"] == 600 * GB and not sample.warnings


async def test_planes_that_are_shown_later_are_found(tmp_path: Path) -> None:
    write(tmp_path / "class/infiniband", {"mlx5_0": logical()})
    watched = collector(tmp_path)
    assert rows(await watched.collect())[PORT]["speed_bits_per_second"] == 800 * GB
    write(tmp_path / "class/infiniband", {"smi1": planes(3)})
    assert rows(await watched.collect())[PORT]["speed_bits_per_second"] == 600 * GB


async def test_counters_are_the_ports_own_and_sums_of_its_planes_where_it_has_none(tmp_path: Path) -> None:
    own = ib_port(
        rate="800 Gb/sec (4X XDR)", counters={"port_xmit_data": "1000", "link_downed": "1"}, hw_counters=None
    )
    tree(tmp_path, logical_port=own)
    values = await one(tmp_path)
    assert values["tx_bytes"] == 4000 and values["link_downed"] == 1
    assert (
        values["rx_bytes"] == 4 * 4 * 2000 and values["symbol_errors"] == 4 * 5 and values["tx_wait_ticks"] == 4 * 7
    )


async def test_a_sum_with_a_saturated_or_an_unknown_part_is_saturated_or_unknown(tmp_path: Path) -> None:
    tree(tmp_path, logical_port=ib_port(counters=None, hw_counters=None))
    ports = tmp_path / "class/infiniband/smi1/ports"
    write(ports / "2", {"counters": {"link_downed": "255", "symbol_error": "N/A (no PMA)"}})
    values = await one(tmp_path)
    assert values["link_downed"] == 255
    assert "symbol_errors" not in values
    assert values["rx_errors"] == 4 * 4


WIRING = """
name: xdr
planes: [A]
nodes: [{name: n0, gpus: 1, nics: 1}]
switches: [{name: A-leaf-0, tier: leaf, plane: A}]
links: [{a: n0/nic0/p0, b: A-leaf-0/p0, speed: 800G}]
"""


async def test_the_twin_tells_a_lost_plane_as_a_slow_link_of_three_quarters(tmp_path: Path) -> None:
    tree(tmp_path)
    twin = Twin(read_wiring(Document("xdr.yaml", WIRING)))
    now = 1_764_547_200_000_000_000
    watched = InfinibandCollector({("mlx5_0", 1): PORT}, root=tmp_path, clock=lambda: now)

    async def run(seconds: int) -> None:
        nonlocal now
        for _ in range(seconds):
            now += 1_000_000_000
            for frame in (await watched.collect()).frames:
                twin.ingest(frame)

    await run(10)
    assert not twin.incidents
    write(tmp_path / "class/infiniband/smi1/ports/3", {"rate": NO_LINK[0]})
    await run(10)
    (incident,) = twin.incidents
    assert (incident.kind, incident.cause, incident.is_open) == ("link_slow", PORT, True)
    assert incident.effect["bandwidth_fraction"] == 0.75
    write(tmp_path / "class/infiniband/smi1/ports/3", {"rate": "200 Gb/sec (1X XDR)"})
    await run(60)
    assert not [i for i in twin.incidents if i.is_open]


RATES = st.sampled_from(
    [None, *NO_LINK, "200 Gb/sec (1X XDR)", "100 Gb/sec (1X NDR)", "", "N/A", "-1 Gb/sec", "\u0660 Gb/sec"]
)
STATES = st.sampled_from([None, "4: ACTIVE", "1: DOWN", "5: ACTIVE_DEFER", "junk"])


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(STATES, RATES, st.sampled_from([None, "12", "255", "x"])), min_size=1, max_size=6),
    st.sampled_from([None, 800e9, 400e9]),
)
def test_whatever_planes_say_a_port_gets_no_speed_that_they_do_not_add_up_to(
    tmp_path_factory: pytest.TempPathFactory,
    ports: list[tuple[str | None, str | None, str | None]],
    own: float | None,
) -> None:
    root = tmp_path_factory.mktemp("planes")
    opened = []
    for n, (state, rate, downs) in enumerate(ports):
        opened.append(Files(write(root / str(n), {"state": state, "rate": rate, "counters": {"link_downed": downs}})))
        assert opened[-1].present()
    values: dict[str, Value] = {"up": 1, "speed_bits_per_second": own}
    add_planes(values, opened)
    speed = values["speed_bits_per_second"]
    told = {"200 Gb/sec (1X XDR)": 200e9, "100 Gb/sec (1X NDR)": 100e9, **dict.fromkeys(NO_LINK, 0.0)}
    parts = [0.0 if s == "1: DOWN" else told.get(r or "") if s == "4: ACTIVE" else None for s, r, _ in ports]
    known = [p for p in parts if p is not None]
    if len(known) < len(parts):
        assert speed is None
    else:
        assert speed == (min(sum(known), own or sum(known)) if sum(known) else own)
    downs = [d for _, _, d in ports]
    numbers = [int(d) for d in downs if d is not None and d.isdigit()]
    expected = None if len(numbers) < len(downs) else 255 if 255 in numbers else sum(numbers)
    assert values["link_downed"] == expected
