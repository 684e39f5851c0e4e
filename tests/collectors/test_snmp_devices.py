"""Odd devices: real snmpd answers from tables that a test writes, some of it through a relay that loses answers."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from collectors.base import CollectorError, Sample
from collectors.portnames import PortNames
from collectors.snmp import Agent, Login, SnmpCollector, cabled_ports
from tests.collectors.test_portnames import leaf
from tests.rigs.snmpd import COMMUNITY, Device, Relay, cells
from twin.frames import UNKNOWN_U64

pytestmark = pytest.mark.service("snmpd")

LEAF = "A-leaf-0"
FOUR = {1: "lo", 11: "swp1", 12: "swp2", 13: "swp3", 14: "swp4"}
SECOND = 10**9


class Clock:
    """Goes on by a second a sample, as the uptime of the devices does when a test says so."""

    def __init__(self) -> None:
        self.now = 1_700_000_000 * SECOND

    def __call__(self) -> int:
        return self.now


def collector(port: int, ports: int = 4, clock: Clock | None = None, **options: Any) -> SnmpCollector:
    topology = leaf(1, ports)
    agent = Agent("127.0.0.1", port, Login(community=COMMUNITY), patience=options.get("deadline", 8.0))
    cabled = cabled_ports(topology, LEAF)
    return SnmpCollector(LEAF, agent, PortNames(topology), cabled, clock=clock or time.time_ns, **options)


def rows(sample: Sample, metric: str) -> dict[str, float]:
    """One metric by port, `p1`; what is unknown is left out."""
    frame = sample.frames[-1]
    values = zip(frame.names, frame.columns[metric].tolist(), strict=True)
    return {n.partition("/")[2]: v for n, v in values if v == v and v != int(UNKNOWN_U64)}


async def once(table: dict[str, Any], ports: int = 4) -> Sample:
    with Device(table) as device:
        return await collector(device.port, ports).collect()


async def test_the_states_of_rfc_2863_are_up_down_or_unknown() -> None:
    names = {i: f"swp{i}" for i in range(1, 10)}
    status = {1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 7: 7, 8: 0, 9: 99}
    sample = await once(cells(names, status=status), ports=9)
    assert rows(sample, "up") == {"p1": 1, "p2": 0, "p3": 0, "p5": 0, "p6": 0, "p7": 0}
    assert rows(sample, "speed_bits_per_second") == {"p1": 400e9}, "what is not up has no speed"


async def test_a_speed_of_zero_or_at_the_limit_of_its_field_is_unknown() -> None:
    sample = await once(cells(FOUR, speed={11: 0, 12: 4294967295, 13: 800_000}))
    assert rows(sample, "speed_bits_per_second") == {"p3": 800e9, "p4": 400e9}
    assert rows(await once(cells(FOUR, speed=None)), "speed_bits_per_second") == {}


async def test_packets_are_the_sum_of_three_counters_and_unknown_without_one() -> None:
    sample = await once(cells(FOUR, packets12={11: 5}, packets9=None))
    assert rows(sample, "tx_packets")["p1"] == 1011 + 5 + 1011
    assert rows(sample, "rx_packets") == {}
    assert rows(sample, "rx_bytes")["p4"] == 10**12 + 14
    assert (rows(sample, "tx_discards")["p2"], rows(sample, "rx_errors")["p2"]) == (12, 24)


async def test_a_device_with_32_bit_octets_alone_has_no_traffic_and_says_why() -> None:
    sample = await once(cells(FOUR, in_octets=None, out_octets=None))
    assert rows(sample, "tx_bytes") == rows(sample, "rx_bytes") == {}
    assert rows(sample, "up")["p1"] == 1
    (warning,) = sample.warnings
    assert "no 64-bit octet counters" in warning


async def test_ports_are_placed_by_description_and_then_by_alias_where_names_say_nothing() -> None:
    odd = {i: f"0/{i}/x" for i in range(1, 5)}
    descr = {i: f"Ethernet{i}" for i in odd}
    by_descr = await once(cells(odd, descr=descr))
    assert rows(by_descr, "rx_bytes") == {f"p{i}": 10**12 + i for i in odd}
    by_alias = await once(cells(odd, alias={1: "p4", 2: "p3", 3: "spare", 4: ""}))
    assert rows(by_alias, "rx_bytes") == {"p4": 10**12 + 1, "p3": 10**12 + 2}
    assert "2 cabled ports" in by_alias.warnings[0]


async def test_two_interfaces_of_one_name_are_neither() -> None:
    sample = await once(cells({**FOUR, 15: "swp2"}))
    assert set(rows(sample, "up")) == {"p1", "p3", "p4"}


async def test_a_device_without_interfaces_or_with_none_of_ours_is_told_in_one_line() -> None:
    with pytest.raises(CollectorError, match="shows no interfaces"):
        await once(cells({}))
    with pytest.raises(CollectorError, match=r"none of its interfaces \(lo, eth0\) is a port of A-leaf-0"):
        await once(cells({1: "lo", 2: "eth0"}))


async def test_indices_dealt_anew_after_a_reboot_do_not_move_a_reading_to_another_port() -> None:
    with Device(cells(FOUR, uptime=10**6, in_octets={11: 111, 12: 222})) as device:
        source = collector(device.port)
        assert rows(await source.collect(), "rx_bytes")["p1"] == 111
        dealt = {1: "lo", 11: "swp4", 12: "swp1", 13: "swp2", 14: "swp3"}
        device.write(cells(dealt, uptime=500, in_octets={11: 4444, 12: 1111, 13: 2222, 14: 3333}))
        sample = await source.collect()
        assert rows(sample, "rx_bytes") == {"p1": 1111, "p2": 2222, "p3": 3333, "p4": 4444}
        anew = sample.frames[0]
        assert set(anew.names) == set(sample.frames[1].names)
        assert all((column == UNKNOWN_U64).all() for column in anew.columns.values()), "1111 - 111 is no rate"


@pytest.mark.parametrize("changed", [(100, 200), (None, None)], ids=["told", "not told"])
async def test_indices_dealt_anew_while_it_runs_are_seen(changed: tuple[int | None, int | None]) -> None:
    """Where the device does not tell when its table changed, its names are looked at every time."""
    with Device(cells(FOUR, changed=changed[0])) as device:
        source = collector(device.port)
        await source.collect()
        swapped = {**FOUR, 11: "swp2", 12: "swp1"}
        device.write(cells(swapped, changed=changed[1], octets=5 * 10**12))
        sample = await source.collect()
        assert rows(sample, "rx_bytes")["p1"] == 5 * 10**12 + 12
        assert sorted(sample.frames[0].names) == [f"{LEAF}/p1", f"{LEAF}/p2"]


async def test_counters_that_were_reset_give_no_rate_for_that_port_alone() -> None:
    with Device(cells(FOUR, octets=1000)) as device:
        source = collector(device.port)
        await source.collect()
        device.write(cells(FOUR, octets=10**9, discontinuity={13: 90_000}))
        anew, frame = (await source.collect()).frames
        assert anew.names == (f"{LEAF}/p3",)
        assert anew.time == frame.time - 1000
        device.write(cells(FOUR, octets=2 * 10**9, discontinuity={13: 90_000}))
        assert len((await source.collect()).frames) == 1


async def test_a_restart_in_a_gap_is_seen_though_the_uptime_has_grown() -> None:
    clock = Clock()
    with Device(cells(FOUR, uptime=1000, octets=10**6)) as device:
        source = collector(device.port, clock=clock)
        await source.collect()
        clock.now += 60 * SECOND
        device.write(cells(FOUR, uptime=7100, octets=10**7))
        assert len((await source.collect()).frames) == 1, "a minute on, a minute more: it ran through"
        clock.now += 600 * SECOND
        device.write(cells(FOUR, uptime=9000, octets=10**9))
        assert len((await source.collect()).frames) == 2, "ten minutes on it has been up for one and a half"


async def test_counters_that_stand_still_are_left_out_until_the_switch_must_be_idle() -> None:
    clock = Clock()
    with Device(cells(FOUR)) as device:
        source = collector(device.port, clock=clock)

        async def counted() -> bool:
            (frame,) = (await source.collect()).frames
            clock.now += 4 * SECOND
            assert set(frame.columns) > {"up"}
            return "tx_bytes" in frame.columns

        assert [await counted() for _ in range(4)] == [True, False, False, True]
        device.write(cells(FOUR, octets=10**12 + 1))
        assert await counted()


async def test_speed_is_asked_again_as_soon_as_a_port_comes_up() -> None:
    with Device(cells(FOUR, status={12: 2})) as device:
        source = collector(device.port)
        assert "p2" not in rows(await source.collect(), "speed_bits_per_second")
        device.write(cells(FOUR, speed={12: 200_000}))
        assert rows(await source.collect(), "speed_bits_per_second")["p2"] == 200e9


async def test_cells_that_hold_something_else_are_unknown() -> None:
    table = cells(FOUR)
    table["1.3.6.1.2.1.31.1.1.1.6.11"] = ("string", "many")
    table["1.3.6.1.2.1.31.1.1.1.6.12"] = ("integer", -5)
    table["1.3.6.1.2.1.31.1.1.1.6.13"] = ("counter64", 2**64 - 1)
    table["1.3.6.1.2.1.2.2.1.8.13"] = ("string", "up")
    table["1.3.6.1.2.1.31.1.1.1.15.14"] = ("objectid", ".1.3.6.1")
    sample = await once(table)
    assert rows(sample, "rx_bytes") == {"p4": 10**12 + 14}
    assert set(rows(sample, "up")) == {"p1", "p2", "p4"}
    assert set(rows(sample, "speed_bits_per_second")) == {"p1", "p2"}


async def test_a_table_of_128_ports_and_more_besides_takes_few_requests() -> None:
    names = (
        {1: "lo", 2: "eth0"}
        | {100 + i: f"swp{i}" for i in range(1, 129)}
        | {1000 + i: f"vlan{i}" for i in range(300)}
    )
    with Device(cells(names)) as device:
        relay = await Relay.to(device.port)
        source = collector(relay.port, 128)
        sample = await source.collect()
        assert rows(sample, "rx_bytes") == {f"p{i}": 10**12 + 100 + i for i in range(1, 129)}
        assert not sample.warnings
        before = relay.requests
        await source.collect()
        assert relay.requests - before == 12 * 4 + 1, "12 columns of 130 rows at 40 a request, and the state"
        relay.close()


@asynccontextmanager
async def relayed(
    change: Callable[[bytes], list[bytes]], deadline: float
) -> AsyncIterator[tuple[SnmpCollector, Relay]]:
    """A collector that has read once, and from then on gets what `change` leaves of the answers."""
    with Device(cells(FOUR)) as device:
        relay = await Relay.to(device.port)
        source = collector(relay.port, deadline=deadline)
        await source.collect()
        relay.change = change
        yield source, relay
        relay.close()


async def test_lost_answers_are_asked_for_again() -> None:
    lot = random.Random(5)
    async with relayed(lambda answer: [] if lot.random() < 0.15 else [answer], 2.0) as (source, _):
        source.deadline = 30.0
        assert len(rows(await source.collect(), "up")) == 4


async def test_late_answers_are_not_taken_for_others() -> None:
    """Every answer comes again after the next one, when another column has been asked for."""
    held: list[bytes] = []

    def again(answer: bytes) -> list[bytes]:
        held.append(answer)
        return [*held[-2:-1], answer]

    async with relayed(again, 4.0) as (source, _):
        sample = await source.collect()
        assert rows(sample, "up") == {f"p{i}": 1 for i in range(1, 5)}
        assert len(held) > 10


async def test_an_agent_that_falls_silent_has_stopped_answering_and_is_heard_again() -> None:
    async with relayed(lambda _: [], 1.0) as (source, relay):
        with pytest.raises(CollectorError, match="has stopped answering"):
            await source.collect()
        with pytest.raises(CollectorError, match="does not answer: it cannot be reached"):
            await source.collect()
        relay.change = lambda answer: [answer]
        assert len(rows(await source.collect(), "up")) == 4


async def test_an_agent_that_answers_each_time_but_too_slowly_is_told_so() -> None:
    async with relayed(lambda answer: [answer], 8.0) as (source, relay):
        source.deadline = 0.6
        slow = relay._front.sendto
        loop = asyncio.get_running_loop()
        relay._front = type(
            "Late", (), {"sendto": lambda _, *a: loop.call_later(0.1, slow, *a), "close": lambda _: None}
        )()
        with pytest.raises(CollectorError, match=r"is too slow: its table took longer than the deadline of 0\.6 s"):
            await source.collect()
        await asyncio.sleep(0.2)


async def test_a_column_that_ends_early_leaves_the_other_ports_unknown() -> None:
    table = cells(FOUR)
    for i in (13, 14):
        del table[f"1.3.6.1.2.1.31.1.1.1.6.{i}"]
    sample = await once(table)
    assert set(rows(sample, "rx_bytes")) == {"p1", "p2"}
    assert set(rows(sample, "tx_bytes")) == {"p1", "p2", "p3", "p4"}


async def test_a_table_that_changes_under_every_reading_is_not_read() -> None:
    with Device(cells(FOUR)) as device:
        number = 0

        def change(answer: bytes) -> list[bytes]:
            nonlocal number
            number += 1
            device.write(cells(FOUR, changed=number))
            return [answer]

        relay = await Relay.to(device.port, change)
        with pytest.raises(CollectorError, match="its interface table changes while it is read"):
            await collector(relay.port).collect()
        relay.close()


async def test_answers_that_end_anywhere_are_no_answers() -> None:
    """On some of them the library panics, which is no Exception: it must not end the supervisor."""
    async with relayed(lambda answer: [answer], 4.0) as (source, relay):
        for length in range(1, 60):
            relay.change = lambda answer, length=length: [answer[:length]]  # type: ignore[misc]
            with pytest.raises(CollectorError, match="answers what is not SNMP"):
                await source.collect()


@pytest.mark.parametrize("seed", range(3))
async def test_mutilated_answers_never_raise_anything_but_a_collector_error(seed: int) -> None:
    """Bit errors, cuts and additions: a reading that comes through all the same is one of the right shape."""
    lot = random.Random(seed)

    def mutilated(answer: bytes) -> list[bytes]:
        out = bytearray(answer)
        if lot.random() < 0.5:
            for _ in range(lot.randint(1, 4)):
                at = lot.randrange(len(out))
                match lot.randrange(3):
                    case 0:
                        out[at] = lot.randrange(256)
                    case 1:
                        del out[max(at, 1) :]
                    case _:
                        out.insert(at, lot.randrange(256))
        return [bytes(out)]

    failures = 0
    async with relayed(mutilated, 1.0) as (source, relay):
        for _ in range(12):
            try:
                sample = await source.collect()
            except CollectorError as problem:
                failures += 1
                assert "\n" not in str(problem)
            else:
                assert all(frame.names == sample.frames[0].names for frame in sample.frames)
                assert set(rows(sample, "up").values()) <= {0, 1}
        assert failures
        relay.change, source.deadline = (lambda answer: [answer]), 30.0
        assert len(rows(await source.collect(), "up")) == 4, "and then it goes on"
