from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nvml_rig import collector, eight, library, nvml, rows

from collectors.nvml.fields import entries_for
from collectors.nvml.values import ENTRY, bit_error_rate, decode
from tests.rigs.nvml.rig import GEN5, Standin, gpu
from twin.frames import UNKNOWN_U64, as_float

__all__ = ["library", "nvml"]  # fixtures


async def test_eight_gpus_of_the_h100_kind_give_every_value_in_base_units(nvml: Standin) -> None:
    nvml.write(eight())
    sample = await collector().collect()
    values = rows(sample)
    assert sample.warnings == []
    assert [f.kind for f in sample.frames] == ["gpu", "nvlink"]
    assert [len(f.names) for f in sample.frames] == [8, 144]
    for i in range(8):
        assert values[f"n0/gpu{i}"] == {
            "utilization_ratio": (40 + i) / 100, "memory_used_bytes": 20845690880 + i, "temperature_celsius": 30 + i,
            "power_watts": pytest.approx(510 + i / 1000), "power_limit_watts": 700, "sm_clock_hertz": 1.98e9,
            "throttle_reasons": 4, "xid": 0, "ecc_uncorrected": 2, "energy_joules": pytest.approx(7000.5 + i / 1000),
            "pcie_tx_bytes": 2**40 + i, "pcie_rx_bytes": 2**41 + i, "fabric_state": 3,
        }  # fmt: skip
        for k in range(18):
            n = 1000 * i + k
            assert values[f"n0/gpu{i}/nvlink{k}"] == {
                "up": 1, "speed_bytes_per_second": 26562e6, "tx_bytes": 1024 * (2**40 + n),
                "rx_bytes": 1024 * (2**41 + n), "crc_errors": k, "replay_errors": 2 * k, "recovery_errors": 3 * k,
            }  # fmt: skip


async def test_eight_gpus_of_the_b200_kind_give_nvlink_5_counters(nvml: Standin) -> None:
    nvml.write(eight(gen=GEN5))
    values = rows(await collector().collect())
    assert values["n0/gpu5/nvlink7"] == {
        "up": 1, "speed_bytes_per_second": 53125e6, "tx_bytes": 2**50 + 5007, "rx_bytes": 2**51 + 5007,
        "recovery_errors": 7, "symbol_errors": 14,
    }  # fmt: skip


async def test_counters_keep_all_bits_and_what_no_gpu_has_is_all_ones(nvml: Standin) -> None:
    nvml.write([gpu(0, gen=GEN5).say(f"field 202 3 ull {2**62 + 1}")])
    links = (await collector().collect()).frames[1]
    assert int(links.columns["tx_bytes"][3]) == 2**62 + 1
    assert set(links.columns["crc_errors"].tolist()) == {int(UNKNOWN_U64)}


async def test_one_call_a_gpu_asks_for_all_fields_and_only_for_those_it_has(nvml: Standin) -> None:
    nvml.write(eight())
    watched = collector()
    await watched.collect()
    calls, entries = nvml.calls("nvmlDeviceGetFieldValues"), nvml.entries
    await watched.collect()
    assert nvml.calls("nvmlDeviceGetFieldValues") - calls == 8
    assert nvml.entries - entries == 8 * (7 + 7 * 18)  # module power, symbol errors: lacking, not asked for


async def test_a_link_is_its_own_scope_and_the_total_of_all_is_not_a_link(nvml: Standin) -> None:
    """A field asked for without a scope is link 0's; UINT_MAX is the sum."""
    nvml.write([gpu(0, links=4).say("field 138 all ull 99999", "field 138 2 ull 7", "field 138 0 ull 1")])
    values = rows(await collector().collect())
    assert [values[f"n0/gpu0/nvlink{k}"]["tx_bytes"] for k in (0, 2)] == [1024, 7 * 1024]
    assert "n0/gpu0/nvlink4" not in values


async def test_the_link_count_is_asked_for_though_queries_answer_for_36(nvml: Standin) -> None:
    one = gpu(0, gen=GEN5)
    one.say(*(f"field 165 {k} uint 0" for k in range(18, 36)))
    nvml.write([one])
    assert len((await collector().collect()).frames[1].names) == 18


async def test_without_a_count_links_are_those_whose_state_can_be_asked(nvml: Standin) -> None:
    nvml.write([gpu(0, links=12).say("field 91 0 error 3")])
    assert len((await collector().collect()).frames[1].names) == 12


async def test_a_driver_that_refuses_a_large_batch_gets_smaller_ones(nvml: Standin) -> None:
    nvml.write([gpu(0)], "chunk 64")
    assert rows(await collector().collect())["n0/gpu0/nvlink17"]["rx_bytes"] == 1024 * (2**41 + 17)


async def test_sentinels_are_unknown_and_never_numbers(nvml: Standin) -> None:
    nvml.write([gpu(0).say(
        "field 138 1 ull 0xFFFFFFFFFFFFFFFF", "field 139 1 ull 9223372036854775794", "field 163 1 uint 0xFFFFFFFF",
        "field 186 0 double 140737488355328",
    )])  # fmt: skip
    values = rows(await collector().collect())
    assert not {"tx_bytes", "rx_bytes", "crc_errors"} & set(values["n0/gpu0/nvlink1"])
    assert "power_watts" not in values["n0/gpu0"]


async def test_a_narrow_value_leaves_the_other_bytes_of_the_union_alone(nvml: Standin) -> None:
    nvml.write([gpu(0).say("field 186 0 ushort 4000", "field 83 0 int 5000", "field 190 0 double 650000.5")])
    values = rows(await collector().collect())["n0/gpu0"]
    assert (values["power_watts"], values["energy_joules"]) == (4.0, 5.0)
    assert values["power_limit_watts"] == pytest.approx(650.0005)


async def test_a_32_bit_pcie_counter_wraps_too_fast_to_be_of_use(nvml: Standin) -> None:
    nvml.write([gpu(0).say("field 197 0 uint 77")])
    watched = collector()
    values = rows(await watched.collect())["n0/gpu0"]
    assert "pcie_tx_bytes" not in values
    assert values["pcie_rx_bytes"] == 2**41
    why = {c.metric: c.reason for c in watched.capabilities()}
    assert why["pcie_tx_bytes"] == "only 32 bits, which wrap within a sample"


async def test_no_call_that_blocks_in_the_driver_is_made(nvml: Standin) -> None:
    nvml.write([gpu(0)])
    await collector().collect()
    assert nvml.calls("nvmlDeviceGetPcieThroughput") == 0


def test_bit_error_rates_are_mantissa_and_exponent() -> None:
    assert bit_error_rate(0x50F) == pytest.approx(5e-15)
    assert bit_error_rate(15 << 8 | 255) == 0


async def test_bit_error_rates_of_nvlinks_are_kept_and_unknown_is_no_rate(nvml: Standin) -> None:
    nvml.write(
        [
            gpu(0, gen=GEN5, links=3).say(
                f"field 220 1 uint {0x50F}", "field 220 2 error 3", f"field 222 1 uint {0x310}"
            )
        ]
    )
    watched = collector()
    await watched.collect()
    assert list(watched.bit_error_rates()) == [f"n0/gpu0/nvlink{k}" for k in range(3)]
    effective, symbol = zip(*watched.bit_error_rates().values(), strict=True)
    assert effective == pytest.approx((0, 5e-15, math.nan), nan_ok=True)
    assert symbol == pytest.approx((math.nan, 3e-16, math.nan), nan_ok=True)


async def test_values_that_change_their_type_or_go_away_between_samples(nvml: Standin) -> None:
    """How to read an entry is worked out once, as long as its type and code stay."""
    one = gpu(0, links=2)
    nvml.write([one])
    watched = collector()
    found = []
    for line in ("sll -5", "sll 77", "error 15", "double 3.5", "double 4", "ushort 9", "later 9", "uint 11"):
        await watched.collect()
        nvml.write([one.say(f"field 163 1 {line}")])
        found.append(rows(await watched.collect())["n0/gpu0/nvlink1"].get("crc_errors"))
    assert found == [None, 77, None, None, 4, 9, None, 11]


async def test_a_call_that_answers_with_no_value_is_unknown(nvml: Standin) -> None:
    nvml.write([gpu(0).say(
        "put utilization 4294967295", "put clock 4294967295", "put memory 1 1 1 18446744073709551615",
        "field 185 0 error 3", "field 186 0 error 3", "put power 4294967295",
    )])  # fmt: skip
    values = rows(await collector().collect())["n0/gpu0"]
    assert not {"utilization_ratio", "sm_clock_hertz", "memory_used_bytes", "power_watts"} & set(values)


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from([0, 0, 3, 15]), st.integers(0, 2**64 - 1))))
def test_whatever_an_entry_holds_floats_and_whole_numbers_agree(entries: list[tuple[int, int, int]]) -> None:
    table = entries_for([(1, 0)] * len(entries))
    assert table.dtype.itemsize == ENTRY.itemsize == 40
    for row, (kind, code, raw) in zip(table, entries, strict=True):
        row["type"], row["code"], row["value"] = kind, code, raw
    with np.errstate(invalid="ignore"):
        floats, wholes = decode(table)
    for (_, code, _), value, whole in zip(entries, floats.tolist(), as_float(wholes).tolist(), strict=True):
        assert not code or math.isnan(value)
        assert math.isnan(whole) or whole == value
