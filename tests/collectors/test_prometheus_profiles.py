"""Profiles: the shipped ones are whole, and a mistake in a site's own is told with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from collectors.prometheus.profiles import fields_of, load_profiles, shipped
from twin.errors import InputError
from twin.metrics import REGISTRY


@pytest.mark.parametrize("name", sorted(shipped()))
def test_a_shipped_profile_says_where_its_names_come_from_and_gives_metrics_of_ours(name: str) -> None:
    (profile,) = load_profiles([name], Path())
    assert profile.name == name and len(profile.series) >= 4
    for rules in profile.rules.values():
        for rule in rules:
            metric = REGISTRY[rule.entity.kind, rule.entry.to]
            assert not (metric.counter and (rule.entry.values or rule.entry.words)), "a counter is a number"


def test_rates_that_are_typed_as_counters_are_in_no_profile() -> None:
    (profile,) = load_profiles(["dcgm-exporter"], Path())
    assert not [s for s in profile.series if "BANDWIDTH" in s or "THROUGHPUT" in s or "PCIE_TX" in s]


def test_every_mistake_of_a_profile_is_told_with_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "wrong.yaml").write_text(
        "source: nobody\n"
        "entities:\n"
        "- kind: gpu\n"
        "  device: [host]\n"
        "  address: 'gpu{gpu}'\n"
        "  metrics:\n"
        "    a: temperature_celsius\n"
        "    b: warmth\n"
        "    c-d: power_watts\n"
        "- kind: port\n"
        "  device: [host]\n"
        "  interface: ['{if}']\n"
        "  metrics: {x: up}\n"
    )
    with pytest.raises(InputError) as problem:
        load_profiles(["wrong.yaml", "dcgm"], tmp_path)
    first, second, third = problem.value.problems
    assert first.startswith(f"{tmp_path}/wrong.yaml:8: entities[0].metrics.b: a gpu has no 'warmth'; it has util")
    assert second.startswith(f"{tmp_path}/wrong.yaml:9: entities[0].metrics.c-d: not the name of a series")
    assert third.startswith("'dcgm' is no profile; there are dcgm-exporter, gnmic,")


@pytest.mark.parametrize(
    ("entity", "says"),
    [
        ("{kind: gpu, device: [h], metrics: {a: xid}}", "expected one of address and interface"),
        ("{kind: gpu, device: [h], interface: ['{x}'], metrics: {a: xid}}", "a gpu needs an address"),
        ("{kind: gpu, device: [h], address: 'gpu{0}', metrics: {a: xid}}", "expected labels in braces"),
        ("{kind: gpu, device: [h], address: 'gpu{', metrics: {a: xid}}", "3: entities[0]"),
        ("{kind: gpu, device: [h], address: g, skip: {a: '('}, metrics: {a: xid}}", "skip.a: '('"),
        ("{kind: gpu, device: [h], address: g, metrics: {a: {to: xid, scale: 0}}}", "greater than 0"),
        ("{kind: gpu, device: [h], address: g, metrics: {a: {to: xid, label: x}}}", "belong together"),
        ("{kind: gpu, device: [h], address: g, metrics: {a: {to: xid, scael: 2}}}", "unknown key"),
        ("{kind: switch, device: [h], address: g, metrics: {a: xid}}", "kind: 'switch'"),
    ],
)
def test_a_malformed_entity_is_refused(tmp_path: Path, entity: str, says: str) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(f"source: x\nentities:\n- {entity}\n")
    with pytest.raises(InputError) as problem:
        load_profiles([str(path)], Path())
    assert says in str(problem.value) and f"{path}:3" in str(problem.value)


def test_a_template_names_its_labels() -> None:
    assert fields_of("gpu{gpu}/nvlink{nvlink}") == ["gpu", "nvlink"]
