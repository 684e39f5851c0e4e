"""What goes wrong on real machines with NVML, each played by the stand-in behind the vendor's own binding."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from nvml_rig import Time, collector, eight, library, nvml, rows

from collectors.base import CollectorError
from collectors.nvml import available
from collectors.supervisor import Supervisor
from tests.rigs.nvml.rig import GEN4, GEN5, LOST, NEEDS_RESET, NOT_SUPPORTED, SCRIPT, Standin, build, gpu
from twin.errors import InputError

__all__ = ["library", "nvml"]  # fixtures
OTHERS = [f"n0/gpu{i}" for i in range(8) if i != 3]


# --- which GPU is which ---


async def test_gpus_are_numbered_by_pci_address_and_not_by_index(nvml: Standin) -> None:
    nvml.write([gpu(0, pci="00000000:B2:00.0"), gpu(1, pci="00000001:01:00.0"), gpu(2, pci="00000000:29:00.0")])
    values = rows(await collector().collect())
    assert [values[f"n0/gpu{i}"]["temperature_celsius"] for i in range(3)] == [32, 30, 31]


async def test_the_site_may_name_gpus_by_uuid_or_pci_address(nvml: Standin) -> None:
    nvml.write([gpu(0), gpu(1)])
    uuid = "GPU-00000000-0000-0000-0000-000000000000"
    watched = collector(addresses={uuid: "n0/gpu1", "11:00.0": "n0/gpu0"})
    values = rows(await watched.collect())
    assert [values[f"n0/gpu{i}"]["temperature_celsius"] for i in range(2)] == [31, 30]
    assert values["n0/gpu1/nvlink0"]["tx_bytes"] == 1024 * 2**40
    with pytest.raises(InputError, match="not the address of a GPU"):
        collector(addresses={uuid: "n0/nic1"})


async def test_gpus_renumbered_by_a_driver_reload_keep_their_addresses_and_it_is_told(nvml: Standin) -> None:
    clock = Time()
    nvml.write(eight())
    watched = collector(clock)
    await watched.collect()
    moved = [gpu(i) for i in (5, 0, 1, 2, 3, 4, 6, 7)]
    nvml.write(moved, "reload 1")
    sample = await watched.collect()
    values = rows(sample)
    assert [values[f"n0/gpu{i}"]["temperature_celsius"] for i in range(8)] == [30 + i for i in range(8)]
    assert nvml.open == 1, "the old client is shut down before a new one is opened"
    moved = ", ".join(f"n0/gpu{i} is {i + 1} and was {i}" for i in range(5)) + ", n0/gpu5 is 0 and was 5"
    assert sample.warnings == [
        "n0: NVML was opened anew: counters of the driver may begin anew",
        f"n0: the driver has new indices, addresses stay: {moved}",
    ]
    clock.now += 60
    assert (await watched.collect()).warnings == [], "told for a minute"


async def test_a_replaced_gpu_is_said_and_a_gpu_that_is_gone_stays_unknown(nvml: Standin) -> None:
    nvml.write([gpu(0), gpu(1), gpu(2)])
    watched = collector(gpus=3)
    await watched.collect()
    nvml.write([gpu(0), gpu(2).say("text uuid GPU-new")], "reload 1")
    sample = await watched.collect()
    values = rows(sample)
    assert values["n0/gpu1"] == {}
    assert values["n0/gpu1/nvlink3"] == {}
    assert values["n0/gpu2"]["temperature_celsius"] == 32
    assert any("n0/gpu1: no GPU there" in w for w in sample.warnings)
    assert any("n0/gpu2: another GPU is at PCI 00000000:12:00.0: GPU-new" in w for w in sample.warnings)


async def test_fewer_gpus_than_the_wiring_has_is_a_warning(nvml: Standin) -> None:
    nvml.write(eight()[:7])
    assert (await collector(gpus=8).collect()).warnings == ["n0: NVML finds 7 GPUs, the wiring has 8"]


# --- GPUs that are lost, sick, or hang ---


@pytest.mark.parametrize(("code", "text"), [(LOST, "the GPU is lost"), (NEEDS_RESET, "the GPU needs a reset")])
async def test_one_lost_gpu_does_not_lose_the_other_seven(nvml: Standin, code: int, text: str) -> None:
    machine = eight()
    nvml.write(machine)
    watched = collector()
    await watched.collect()
    machine[3].say(f"error * {code}")
    nvml.write(machine)
    sample = await watched.collect()
    values = rows(sample)
    assert set(values["n0/gpu3"]) <= {"xid"}
    assert values["n0/gpu3/nvlink0"] == {}
    assert all(values[a]["power_watts"] > 0 and values[f"{a}/nvlink17"]["up"] == 1 for a in OTHERS)
    assert len(sample.warnings) == 1
    assert sample.warnings[0].startswith(f"n0/gpu3: {text}")
    machine[3].lines.pop()
    nvml.write(machine)
    assert rows(await watched.collect())["n0/gpu3"]["temperature_celsius"] == 33, "and it comes back"


async def test_a_gpu_lost_before_the_start_keeps_its_place(nvml: Standin) -> None:
    machine = eight()
    machine[3].say(f"error * {LOST}")
    nvml.write(machine)
    sample = await collector().collect()
    values = rows(sample)
    assert values["n0/gpu3"] == {}
    assert values["n0/gpu4"]["temperature_celsius"] == 34
    assert len(sample.warnings) == 1


async def test_a_gpu_that_hangs_is_left_alone_and_the_others_are_read(nvml: Standin) -> None:
    machine = eight()
    nvml.write(machine)
    watched = collector(deadline=0.8)
    await watched.collect()
    machine[3].say("delay nvmlDeviceGetFieldValues 60000")
    nvml.write(machine)
    for _ in range(3):
        start = time.monotonic()
        sample = await watched.collect()
        assert time.monotonic() - start < 0.8
        values = rows(sample)
        assert set(values["n0/gpu3"]) <= {"xid"}
        assert all(values[a]["power_watts"] > 0 for a in OTHERS)
        assert any("n0/gpu3: a call has not come back yet" in w for w in sample.warnings)
    machine[3].lines.pop()
    nvml.write(machine)
    await asyncio.sleep(0.1)
    assert rows(await watched.collect())["n0/gpu3"]["power_watts"] > 0
    await watched.close()
    assert nvml.open == 0


async def test_a_call_for_events_that_hangs_costs_the_events_alone(nvml: Standin) -> None:
    nvml.write([gpu(0), gpu(1)], "delay nvmlEventSetWait 60000")
    watched = collector(deadline=0.8)
    for _ in range(2):
        sample = await watched.collect()
        values = rows(sample)
        assert values["n0/gpu1"]["power_watts"] > 0
        assert "xid" not in values["n0/gpu1"]
        assert sample.warnings == ["XID errors are unknown: the driver does not come back from a call for them"]
    nvml.write([gpu(0), gpu(1)])
    await asyncio.sleep(0.1)
    assert rows(await watched.collect())["n0/gpu1"]["xid"] == 0


async def test_gpus_that_all_hang_fail_the_source_and_come_back(nvml: Standin) -> None:
    machine = eight()
    nvml.write(machine)
    watched = collector(deadline=0.4)
    await watched.collect()
    nvml.write(machine, "delay nvmlDeviceGetFieldValues 60000")
    for _ in range(4):
        with pytest.raises(CollectorError, match="no GPU answered"):
            await watched.collect()
    nvml.write(machine)
    await asyncio.sleep(0.1)
    assert rows(await watched.collect())["n0/gpu7"]["power_watts"] > 0


async def test_a_driver_that_hangs_as_a_whole_does_not_stop_the_event_loop(nvml: Standin) -> None:
    nvml.write([gpu(0)], "delay nvmlInit 60000")
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.01)

    ticking = asyncio.create_task(tick())
    watched = collector(deadline=0.4)
    with pytest.raises(CollectorError, match=r"no answer within 0\.32 s"):
        await watched.collect()
    with pytest.raises(CollectorError, match="still blocked"):
        await watched.collect()
    ticking.cancel()
    assert ticks > 10
    nvml.write([gpu(0)])
    await asyncio.sleep(0.1)
    assert rows(await watched.collect())["n0/gpu0"]["power_watts"] > 0
    await watched.close()


async def test_under_the_supervisor_a_hanging_driver_fails_its_source_alone(nvml: Standin) -> None:
    nvml.write([gpu(0)], "delay nvmlDeviceGetCount 60000")
    async with Supervisor([collector(deadline=0.2)], heartbeat=0.05) as supervisor:
        await asyncio.sleep(0.6)
        (health,) = supervisor.health()
    assert health.ok is False
    assert health.last_error is not None and "no answer" in health.last_error
    nvml.write([gpu(0)])
    await asyncio.sleep(0.1)


async def test_a_sample_given_up_by_its_caller_does_not_block_the_next(nvml: Standin) -> None:
    machine = [gpu(0), gpu(1)]
    nvml.write(machine)
    watched = collector(deadline=5)
    await watched.collect()
    nvml.write(machine, "delay nvmlDeviceGetFieldValues 60000")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(watched.collect(), 0.1)
    nvml.write(machine)
    await asyncio.sleep(0.1)
    assert rows(await watched.collect())["n0/gpu1"]["power_watts"] > 0


# --- NVML itself comes and goes ---


@pytest.mark.parametrize("code", [1, 9, 18, 999])
async def test_a_driver_reload_or_revoked_access_opens_nvml_anew(nvml: Standin, code: int) -> None:
    nvml.write(eight())
    watched = collector()
    await watched.collect()
    nvml.write(None, f"reload 1 {code}")
    assert rows(await watched.collect())["n0/gpu7"]["temperature_celsius"] == 37
    assert nvml.open == 1


async def test_while_the_driver_is_unloaded_there_is_one_clear_error(nvml: Standin) -> None:
    nvml.write(eight())
    watched = collector()
    await watched.collect()
    nvml.write(None, "reload 1", "error nvmlInit 9")
    for _ in range(2):
        with pytest.raises(CollectorError, match="the NVIDIA driver is not loaded"):
            await watched.collect()
    nvml.write(None, "reload 1")
    assert rows(await watched.collect())["n0/gpu0"]["temperature_celsius"] == 30


async def test_all_gpus_failing_for_long_does_not_open_nvml_every_second(nvml: Standin) -> None:
    clock = Time()
    machine = [gpu(0), gpu(1)]
    nvml.write(machine)
    watched = collector(clock)
    await watched.collect()
    nvml.write(None, "error nvmlDeviceGetFieldValues 999")
    for _ in range(10):
        clock.now += 1
        await watched.collect()
    assert nvml.calls("nvmlInit") == 2
    clock.now += 30
    await watched.collect()
    assert nvml.calls("nvmlInit") == 3


async def test_a_forked_process_opens_nvml_anew(nvml: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    nvml.write([gpu(0)])
    watched = collector()
    await watched.collect()
    pid = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: pid + 1)
    assert rows(await watched.collect())["n0/gpu0"]["temperature_celsius"] == 30
    assert nvml.calls("nvmlInit") == 2


async def test_released_nvml_is_closed_so_that_a_gpu_can_be_reset(nvml: Standin) -> None:
    nvml.write([gpu(0)])
    watched = collector()
    await watched.collect()
    assert nvml.open == 1
    await watched.release()
    assert nvml.open == 0
    with pytest.raises(CollectorError, match="released"):
        await watched.collect()
    watched.resume()
    assert rows(await watched.collect())["n0/gpu0"]["temperature_celsius"] == 30
    await watched.close()
    assert nvml.open == 0


# --- what a GPU, driver or library lacks ---


async def test_what_is_lacking_is_unknown_asked_for_rarely_and_told(nvml: Standin) -> None:
    clock = Time()
    one = gpu(0, gen=GEN5).say("field 190 0 error 3", "error nvmlDeviceGetUtilizationRates 3")
    one.lines.remove("put limit 700000")
    nvml.write([one])
    watched = collector(clock)
    values = rows(await watched.collect())
    assert not {"utilization_ratio", "power_limit_watts"} & set(values["n0/gpu0"])
    told = {c.metric: c for c in watched.capabilities()}
    assert told["crc_errors"].reason == told["utilization_ratio"].reason == "not supported"
    assert (told["recovery_errors"].source, told["tx_bytes"].source) == ("field 215", "field 202")
    assert told["energy_joules"].source == "field 83", "energy is the driver's counter, not integrated power"
    assert told["temperature_celsius"].source == "nvmlDeviceGetTemperatureV"
    for _ in range(5):
        clock.now += 1
        await watched.collect()
    assert nvml.calls("nvmlDeviceGetUtilizationRates") == 1
    one.lines.remove("error nvmlDeviceGetUtilizationRates 3")
    nvml.write([one])
    clock.now += 300
    assert rows(await watched.collect())["n0/gpu0"]["utilization_ratio"] == 0.4


async def test_a_field_that_fails_for_a_moment_is_asked_for_again(nvml: Standin) -> None:
    one = gpu(0).say("field 186 0 error 10")
    one.lines.remove("field 185 0 uint 500000")
    nvml.write([one])
    watched = collector()
    assert "power_watts" not in rows(await watched.collect())["n0/gpu0"]
    one.say("field 186 0 uint 5000")
    nvml.write([one])
    assert rows(await watched.collect())["n0/gpu0"]["power_watts"] == 5


async def test_a_batch_that_is_refused_leaves_nothing_of_the_sample_before(nvml: Standin) -> None:
    nvml.write([gpu(0)])
    watched = collector()
    await watched.collect()
    nvml.write(None, "error nvmlDeviceGetFieldValues 2")
    values = rows(await watched.collect())
    assert "power_watts" not in values["n0/gpu0"]
    assert values["n0/gpu0"]["temperature_celsius"] == 30
    assert values["n0/gpu0/nvlink0"] == {}


async def test_what_the_first_link_lacks_is_still_asked_of_the_others(nvml: Standin) -> None:
    nvml.write([gpu(0).say(*(f"field {f} 0 error 3" for f in (138, 139, 161, 162, 163, 164, 165)))])
    values = rows(await collector().collect())
    assert values["n0/gpu0/nvlink0"] == {}
    assert values["n0/gpu0/nvlink1"]["tx_bytes"] == 1024 * (2**40 + 1)


async def test_older_ways_stand_in_for_fields_that_are_lacking(nvml: Standin) -> None:
    nvml.write([gpu(0).say("field 185 0 error 3", "field 186 0 error 3", "field 190 0 error 2")])
    values = rows(await collector().collect())["n0/gpu0"]
    assert (values["power_watts"], values["power_limit_watts"]) == (999, 700)


async def test_unified_memory_parts_have_no_memory_figure_and_are_healthy(nvml: Standin) -> None:
    one = gpu(0, links=0)
    one.say(f"error nvmlDeviceGetMemoryInfo_v2 {NOT_SUPPORTED}", f"error nvmlDeviceGetMemoryInfo {NOT_SUPPORTED}")
    nvml.write([one])
    sample = await collector().collect()
    assert "memory_used_bytes" not in rows(sample)["n0/gpu0"]
    assert sample.warnings == []
    assert [f.kind for f in sample.frames] == ["gpu"]


async def test_names_that_are_no_utf_8_do_not_matter(nvml: Standin) -> None:
    nvml.write([gpu(0).say("text name NVIDIA \udcff\udcfe H100", "text serial \udc80\udc81")])
    assert rows(await collector().collect())["n0/gpu0"]["temperature_celsius"] == 30


# --- links ---


async def test_a_link_absent_by_design_is_not_down(nvml: Standin) -> None:
    """A PCIe A100 without a bridge, a GPU alone on its board: links exist and were never active."""
    one = gpu(0, links=12)
    one.say("field 165 * uint 0", "field 164 * uint 0")
    nvml.write([one])
    sample = await collector().collect()
    assert not any("up" in v for a, v in rows(sample).items() if "nvlink" in a)


async def test_a_link_once_active_or_of_the_design_goes_down(nvml: Standin) -> None:
    one = gpu(0, links=4).say("field 165 3 uint 0")
    nvml.write([one])
    watched, by_design = collector(), collector(links={"n0/gpu0": 4})
    values, designed = rows(await watched.collect()), rows(await by_design.collect())
    assert "up" not in values["n0/gpu0/nvlink3"]
    assert designed["n0/gpu0/nvlink3"]["up"] == 0
    one.say("field 165 1 uint 0", "field 165 2 uint 2", "field 165 0 uint 3")
    nvml.write([one])
    values = rows(await watched.collect())
    assert [values[f"n0/gpu0/nvlink{k}"]["up"] for k in range(3)] == [0, 0, 1], "traffic disabled, inactive, asleep"
    assert "speed_bytes_per_second" not in values["n0/gpu0/nvlink1"]


async def test_counters_that_an_inactive_link_lacked_come_with_it(nvml: Standin) -> None:
    one = gpu(0, links=2).say("field 165 * uint 0", *(f"field {f} * error 3" for f in (138, 139, 161, 162, 163)))
    nvml.write([one])
    watched = collector(links=2)
    assert "tx_bytes" not in rows(await watched.collect())["n0/gpu0/nvlink0"]
    nvml.write([gpu(0, links=2)])
    await watched.collect()
    assert rows(await watched.collect())["n0/gpu0/nvlink0"]["tx_bytes"] == 1024 * 2**40


# --- fabric, module, MIG, health ---


async def test_all_links_active_and_the_fabric_dead_all_the_same(nvml: Standin) -> None:
    clock = Time()
    machine = [gpu(i, gen=GEN5) for i in range(4)]
    machine[0].say("put fabric 3 999 2 0 1 1 1")
    machine[1].say("put fabric 3 0 2 0 1 0 0")
    machine[2].say(f"put fabric 3 0 2 {1 | 1 << 4 | 5 << 8} 2 1 1")
    machine[3].say("put fabric 2 0 0 0 0 0 0")
    nvml.write(machine)
    watched = collector(clock)
    sample = await watched.collect()
    values = rows(sample)
    assert [values[f"n0/gpu{i}"]["fabric_state"] for i in range(4)] == [3, 3, 3, 2]
    assert all(v["up"] == 1 for a, v in values.items() if "nvlink" in a)
    assert sample.warnings == [
        "n0/gpu0: fabric registration ended with an error: unknown error of the driver",
        "n0/gpu1: fabric registration completed without a cluster: the GPU is in no NVLink domain of the rack",
        "n0/gpu2: fabric: bandwidth is degraded",
        "n0/gpu2: fabric: a route is unhealthy",
        "n0/gpu2: fabric: configuration is wrong: too few NVLinks",
    ]
    clock.now += 61
    assert any("in progress for more than a minute" in w for w in (await watched.collect()).warnings)


async def test_a_gpu_that_comes_into_another_clique_is_told(nvml: Standin) -> None:
    clock = Time()
    one = gpu(0, gen=GEN5)
    nvml.write([one])
    watched = collector(clock)
    assert (await watched.collect()).warnings == []
    nvml.write([one.say("put fabric 3 0 7 0 1 0x0123456789ABCDEF 1")])
    clock.now += 20
    (told,) = (await watched.collect()).warnings
    assert told.startswith(
        "n0/gpu0: fabric: it is in cluster 01234567-89ab-cdef-0000-000000000001 clique 7 now and was"
    )


async def test_what_changes_slowly_is_asked_of_one_gpu_after_the_other(nvml: Standin) -> None:
    """All at the start, then not all in the same second."""
    clock = Time()
    nvml.write(eight())
    watched = collector(clock)
    asked = []
    for _ in range(40):
        before = nvml.calls("nvmlDeviceGetGpuFabricInfoV")
        await watched.collect()
        asked.append(nvml.calls("nvmlDeviceGetGpuFabricInfoV") - before)
        clock.now += 1
    assert asked[0] == 8
    assert max(asked[1:]) == 1
    assert sum(asked[10:30]) == 16, "each every ten seconds"


async def test_a_fabric_or_place_that_is_lacking_is_not_asked_for_again_and_again(nvml: Standin) -> None:
    clock = Time()
    one = gpu(0)
    one.lines.remove("put fabric 3 0 0 0 0 0 0")
    nvml.write([one])
    watched = collector(clock)
    for _ in range(10):
        await watched.collect()
        clock.now += 20
    assert nvml.calls("nvmlDeviceGetGpuFabricInfoV") == nvml.calls("nvmlDeviceGetPlatformInfo") == 1


async def test_an_older_library_gives_the_older_fabric_layout(nvml: Standin) -> None:
    nvml.write([gpu(0, gen=GEN5)], "put fabric_version 2")
    assert rows(await collector().collect())["n0/gpu0"]["fabric_state"] == 3


async def test_slow_values_are_asked_for_rarely(nvml: Standin) -> None:
    clock = Time()
    nvml.write(eight())
    watched = collector(clock)
    for _ in range(10):
        await watched.collect()
        clock.now += 1
    assert nvml.calls("nvmlDeviceGetGpuFabricInfoV") == nvml.calls("nvmlDeviceGetMigMode") == 8
    assert nvml.calls("nvmlDeviceGetName") == 8


async def test_module_power_that_two_gpus_report_counts_once(nvml: Standin) -> None:
    """Readings of a real GB200 tray (nvidia-smi -q): both GPUs of a module read its power at their own moment."""
    own, module = (165.93, 168.57, 156.48, 171.99), (467.17, 460.15, 459.80, 452.43)
    tray = [gpu(i, gen=GEN5) for i in range(4)]
    for one, watts, of_module in zip(tray, own, module, strict=True):
        one.say(f"field 186 0 uint {watts * 1000:.0f}", f"field 186 1 uint {of_module * 1000:.0f}")
        one.say("field 190 0 uint 1200000", "field 190 1 uint 2500000")
    nvml.write(tray)
    watched = collector()
    values = rows(await watched.collect())
    assert [values[f"n0/gpu{i}"]["power_watts"] for i in range(4)] == pytest.approx(own), "scope 0 is the GPU"
    assert [values[f"n0/gpu{i}"]["power_limit_watts"] for i in range(4)] == [1200] * 4
    assert watched.module_power() == {"1650000000001": 467.17, "1650000000002": 459.8}


async def test_mig_mode_is_told_and_costs_nothing_else(nvml: Standin) -> None:
    one = gpu(0).say("put mig 1", f"error nvmlDeviceGetUtilizationRates {NOT_SUPPORTED}")
    nvml.write([one, gpu(1)])
    sample = await collector().collect()
    assert "utilization_ratio" not in rows(sample)["n0/gpu0"]
    assert rows(sample)["n0/gpu1"]["utilization_ratio"] == 0.41
    assert [w for w in sample.warnings if "MIG mode is on" in w]


async def test_what_the_driver_asks_for_and_failing_parts_are_told(nvml: Standin) -> None:
    one = gpu(0, gen=GEN5).say("field 230 0 uint 4", "field 145 0 uint 1", f"field 220 6 ull {0x50B}")
    nvml.write([one])
    assert (await collector().collect()).warnings == [
        "n0/gpu0: drain the node, then reset the GPU",
        "n0/gpu0: a memory row could not be remapped: the GPU is to be replaced",
        "n0/gpu0: effective bit error rate above 1e-12 on NVLink 6 (5e-11)",
    ]


# --- events ---


async def test_an_xid_after_the_start_is_kept_and_one_before_is_not_known(nvml: Standin) -> None:
    one, two = gpu(0).say("event 1 0x8 13"), gpu(1)
    nvml.write([one, two])
    watched = collector()
    assert rows(await watched.collect())["n0/gpu0"]["xid"] == 0
    one.say("event 2 0x8 74", "event 3 0x8 79")
    one.say("event 4 0x8000 1")  # a recovery action is no XID
    two.say("event 1 0x4000 0")
    nvml.write([one, two])
    sample = await watched.collect()
    assert [rows(sample)[f"n0/gpu{i}"]["xid"] for i in range(2)] == [79, 0]
    assert sample.warnings == ["n0/gpu1: the driver said that this GPU became unavailable"]
    assert rows(await watched.collect())["n0/gpu0"]["xid"] == 79


async def test_a_healthy_gpu_that_supports_no_events_has_no_xid(nvml: Standin) -> None:
    one = gpu(0)
    one.lines.remove("put events 0xC008")
    nvml.write([one])
    watched = collector()
    sample = await watched.collect()
    assert "xid" not in rows(sample)["n0/gpu0"]
    assert sample.warnings == []
    assert {c.metric: c.reason for c in watched.capabilities()}["xid"] == "events are not supported"


# --- what doctor shows ---


async def test_what_is_lacking_is_told_with_who_lacks_it(nvml: Standin) -> None:
    one = gpu(0, gen=GEN5).say("field 190 0 error 2", "error nvmlDeviceGetEnforcedPowerLimit 4")
    one.say("error nvmlDeviceGetUtilizationRates 13", "field 83 0 error 3", "field 191 0 error 3")
    lost = gpu(1).say(f"error * {LOST}")
    nvml.write([one, lost])
    watched = collector()
    assert watched.capabilities() == []
    await watched.collect()
    told = {(c.address, c.metric): c for c in watched.capabilities()}
    assert {m: told["n0/gpu0", m].lacking for m in ("power_limit_watts", "utilization_ratio", "energy_joules")} == {
        "power_limit_watts": "permission", "utilization_ratio": "library", "energy_joules": "gpu",
    }  # fmt: skip
    assert all((c.source is None) == (c.reason is not None) == (c.lacking is not None) for c in told.values())
    assert told["n0/gpu0", "up"].source == "field 165"
    assert told["n0/gpu0", "fabric"].source == told["n0/gpu0", "fabric_state"].source == "nvmlDeviceGetGpuFabricInfoV"
    assert told["n0/gpu0", "place"].source == "nvmlDeviceGetPlatformInfo"
    assert (told["n0/gpu0", "effective_ber"].source, told["n0/gpu0", "symbol_ber"].lacking) == ("field 220", "gpu")
    assert {(c.lacking, c.reason) for (a, _), c in told.items() if a == "n0/gpu1"} == {
        ("trouble", "the GPU is lost: it fell off the bus")
    }


@pytest.mark.parametrize(
    ("gen", "has"),
    [
        (GEN4, {"crc_errors": 163, "replay_errors": 161, "recovery_errors": 162, "tx_bytes": 138}),
        (GEN5, {"symbol_errors": 221, "recovery_errors": 215, "tx_bytes": 202, "effective_ber": 220}),
    ],
)
async def test_the_counters_of_a_link_differ_from_blackwell_on(nvml: Standin, gen: int, has: dict[str, int]) -> None:
    nvml.write([gpu(0, gen=gen)])
    watched = collector()
    await watched.collect()
    told = {c.metric: c.source for c in watched.capabilities()}
    of_links = ("crc_errors", "replay_errors", "recovery_errors", "symbol_errors", "tx_bytes", "effective_ber")
    assert {m: told[m] for m in of_links if told[m]} == {m: f"field {n}" for m, n in has.items()}


# --- through the system's own loader ---

PROGRAM = """
import asyncio, json, sys
from collectors.nvml import NvmlCollector, available
assert "pynvml" not in sys.modules
if not available():
    print("none")
    try:
        asyncio.run(NvmlCollector("n0").collect())
    except Exception as problem:
        print(problem)
    raise SystemExit
from twin.frames import to_line
print(*map(to_line, asyncio.run(NvmlCollector("n0").collect()).frames), sep="\\n")
"""


def run(**environment: str) -> str:
    here = {**os.environ, **environment}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=here, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_vendor_s_binding_finds_the_library_by_the_loader_s_rule(nvml: Standin, library: Path) -> None:
    nvml.write(eight(gen=GEN5))
    out = run(LD_LIBRARY_PATH=str(library.parent), **{SCRIPT: str(nvml.script)})
    assert '"n0/gpu7/nvlink17":{"up":1,"speed_bytes_per_second":53125000000' in out


def test_an_old_library_lacks_functions_and_the_rest_is_there(nvml: Standin, tmp_path: Path) -> None:
    nvml.write(eight())
    build(tmp_path, old=True)
    out = run(LD_LIBRARY_PATH=str(tmp_path), **{SCRIPT: str(nvml.script)})
    assert '"temperature_celsius":37' in out
    assert "fabric_state" not in out.splitlines()[0]
    assert f'"memory_used_bytes":{20845690880 + 629145600}' in out, "there the reserved part counts as used"


def test_without_a_library_there_is_one_clear_error(tmp_path: Path) -> None:
    broken = tmp_path / "libnvidia-ml.so.1"
    broken.write_text("not a library")
    out = run(LD_LIBRARY_PATH=str(tmp_path))
    assert out.splitlines()[0] == "none"
    assert "libnvidia-ml.so.1 is not there: no NVIDIA driver on this host?" in out


async def test_nvml_is_available_only_where_it_opens(nvml: Standin) -> None:
    nvml.write([gpu(0)])
    assert available()
    nvml.write([gpu(0)], "error nvmlInit 9")
    assert not available()
    assert nvml.open == 0
