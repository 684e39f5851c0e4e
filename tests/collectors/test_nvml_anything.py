"""Whatever the driver answers: no crash, and no number that it did not give."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nvml_rig import Time, collector, library, nvml

from collectors.base import CollectorError, Sample
from collectors.nvml import fields, slow
from collectors.nvml.fields import Source
from collectors.nvml.queries import INSTEAD, QUERIES
from tests.rigs.nvml.rig import FakeGpu, Standin, gpu
from twin.frames import UNKNOWN_U64

__all__ = ["library", "nvml"]  # fixtures

LINKS = 2
Answer = tuple[str, str]  # type and number, as the stand-in takes them
Answers = dict[tuple[int, int], Answer]  # by field and scope
# whole numbers near the edges at which meanings change
EDGES = [0, 1, 2, 3, 2**16 - 1, 2**16, 2**31, 2**32 - 2, 2**32 - 1, 2**32, 2**53 + 1, 2**54, 2**63 - 17, 2**63 - 16,
         2**63, 2**64 - 2, 2**64 - 1]  # fmt: skip
SIGNED = [-(2**63), -1, *(edge for edge in EDGES if edge < 2**63)]
whole = st.one_of(st.sampled_from(EDGES), st.integers(0, 2**64 - 1))
signed = st.one_of(st.sampled_from(SIGNED), st.integers(-(2**63), 2**63 - 1))
answers = st.one_of(
    st.tuples(st.sampled_from(["uint", "ulong", "ull", "ushort", "later"]), whole.map(str)),
    st.tuples(st.sampled_from(["sll", "int"]), signed.map(str)),
    st.tuples(st.just("double"), st.floats().map(repr)),
    st.tuples(st.just("error"), st.sampled_from(["2", "3", "4", "10", "13", "15", "999"])),
)
ASKED = [
    (source.field, scope)
    for table, per_link in ((fields.GPU_FIELDS, False), (fields.LINK_FIELDS, True), (slow.LINK_FIELDS, True))
    for sources in table.values()
    for source in sources
    for scope in (range(LINKS) if per_link else [source.scope])
]
scripts = st.fixed_dictionaries(dict.fromkeys(ASKED, answers))
QUERIED = [query.function for options in (*QUERIES.values(), *INSTEAD.values()) for query in options]
FUNCTIONS = [*QUERIED, *slow.CALLS.values(), "nvmlDeviceGetFieldValues", "nvmlEventSetWait"]
CODES = [1, 2, 3, 4, 10, 13, 15, 16, 25, 999]
broken = st.dictionaries(st.sampled_from(FUNCTIONS), st.sampled_from(CODES), max_size=3)
PUT = ["utilization", "memory", "temperature", "clock", "reasons", "fabric", "platform", "mig", "limit", "power"]
puts = st.lists(st.tuples(st.sampled_from(PUT), st.lists(whole, min_size=7, max_size=7)))


def machine(script: Answers, errors: Mapping[str, int]) -> FakeGpu:
    one = gpu(0, links=LINKS)
    one.say(*(f"field {field} {scope} {kind} {number}" for (field, scope), (kind, number) in script.items()))
    return one.say(*(f"error {function} {code}" for function, code in errors.items()))


def meant(answer: Answer) -> Fraction | None:
    """What an answer says, None where nothing."""
    kind, text = answer
    if kind == "double":
        value = float(text)
        return Fraction(value) if math.isfinite(value) and abs(value) < 140737488355328 else None
    number = int(text)
    if kind == "int":
        return Fraction((number + 2**31) % 2**32 - 2**31)
    if kind == "ushort":
        return Fraction(number % 2**16)
    if kind == "uint":
        return None if number % 2**32 == 2**32 - 1 else Fraction(number % 2**32)
    return Fraction(number) if kind in ("sll", "ulong", "ull") and number < 2**63 - 16 else None


def given_by(source: Source, scope: int, script: Answers, *, counter: bool) -> Fraction | None:
    """A metric in its own unit, as one field of the script gives it."""
    value = meant(script[source.field, scope])
    if value is None:
        return None
    natural = value >= 0 and value.denominator == 1  # a counter that is none before it is scaled is not believed
    value *= Fraction(str(source.scale))
    return value if not counter or (natural and value < 2**64 - 1) else None


def reported(sample: Sample) -> dict[tuple[str, str], int | float | None]:
    """(name, metric) -> value, None where unknown."""
    out: dict[tuple[str, str], int | float | None] = {}
    for frame in sample.frames:
        for metric, column in frame.columns.items():
            for name, value in zip(frame.names, column.tolist(), strict=True):
                out[name, metric] = None if value != value or value == int(UNKNOWN_U64) else value
    return out


def check(values: dict[tuple[str, str], int | float | None], script: Answers, chosen: dict[str, Source]) -> None:
    """Every value is what a field of its metric gives; what the chosen field gives is there."""
    for table, names in (
        (fields.GPU_FIELDS, ["n0/gpu0"]),
        (fields.LINK_FIELDS, [f"n0/gpu0/nvlink{k}" for k in range(LINKS)]),
    ):
        for metric, sources in table.items():
            for link, name in enumerate(names):
                if metric.startswith(".") or (name, metric) not in values:
                    continue
                counter = metric.endswith(("_bytes", "_errors")) or metric == "ecc_uncorrected"
                found = values[name, metric]
                scopes = [link if table is fields.LINK_FIELDS else s.scope for s in sources]
                could = [given_by(s, k, script, counter=counter) for s, k in zip(sources, scopes, strict=True)]
                if found is not None:
                    assert any(_same(found, c) for c in could) or metric in INSTEAD, (name, metric, found)
                elif metric in chosen and metric != "speed_bytes_per_second":
                    assert could[sources.index(chosen[metric])] is None, (name, metric, could)


def _same(found: int | float, value: Fraction | None) -> bool:
    if value is None:
        return False
    return found == value if isinstance(found, int) else found == pytest.approx(float(value), rel=1e-12, abs=0)


def choice(script: Answers) -> dict[str, Source]:
    """The field of each metric that is to be used: the first that any link answers to."""
    out = {}
    for table in (fields.GPU_FIELDS, fields.LINK_FIELDS):
        for metric, sources in table.items():
            for source in sources:
                scopes = range(LINKS) if table is fields.LINK_FIELDS else [source.scope]
                kinds = [script[source.field, k][0] for k in scopes]
                useful = [k for k in kinds if k != "error"]
                if useful and not (source.wide and all(k in ("uint", "int", "ushort") for k in useful)):
                    out[metric] = source
                    break
    return out


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=scripts, second=scripts)
def test_every_number_is_one_that_a_field_gave(nvml: Standin, first: Answers, second: Answers) -> None:
    """In the first sample by the field that is chosen then, in the next with other types, codes and numbers."""

    async def watch() -> None:
        watched = collector(Time())
        nvml.write([machine(first, {})])
        check(reported(await watched.collect()), first, choice(first))
        nvml.write([machine(second, {})])
        check(reported(await watched.collect()), second, {})
        await watched.close()

    asyncio.run(watch())


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(samples=st.lists(st.tuples(scripts, broken), min_size=2, max_size=3), numbers=puts)
def test_calls_that_fail_and_answer_at_random_raise_nothing_but_what_is_said(
    nvml: Standin, samples: list[tuple[Answers, dict[str, int]]], numbers: list[tuple[str, list[int]]]
) -> None:
    async def watch() -> None:
        watched = collector(clock := Time())
        for script, errors in samples:
            one = machine(script, errors).say(*(f"put {name} {' '.join(map(str, n))}" for name, n in numbers))
            nvml.write([one, gpu(1, links=LINKS)])
            try:
                values = reported(await watched.collect())
            except CollectorError:
                continue
            check(values, script, {})
            ratio = values["n0/gpu0", "utilization_ratio"]
            assert ratio is None or 0 <= ratio <= 1
            assert {name for name, _ in values} >= {"n0/gpu0", "n0/gpu1"}
            watched.capabilities(), watched.module_power(), watched.bit_error_rates()
            clock.now += 11
        await watched.close()

    asyncio.run(watch())
