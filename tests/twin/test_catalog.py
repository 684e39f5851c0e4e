"""The catalogue: every number has a source, a malformed entry is refused, a site adds its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from twin import catalog
from twin.catalog import extend, hardware, max_switch_ports, read, switch_ports
from twin.errors import InputError
from twin.topology.presets import PRESETS, preset

OWN = """
[switch.our-leaf]
name = "Our leaf"
capacity_bits_per_second = 12.8e12
ports = { "400G" = 32 }
source = "our data sheet"
"""


@pytest.fixture
def fresh() -> Iterator[None]:
    """The catalogue as shipped, before and after."""
    hardware.cache_clear()
    yield
    catalog._extra.clear()
    hardware.cache_clear()


def problems(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "own.toml"
    path.write_text(text)
    with pytest.raises(InputError) as raised:
        read([path])
    return [p.replace(str(tmp_path) + "/", "") for p in raised.value.problems]


def test_every_estimate_says_why_and_no_number_is_without_a_source() -> None:
    entries = [e for kind in hardware().values() for e in kind.values()]
    assert entries and all(e["source"] for e in entries)
    for entry in entries:
        for key, reason in entry.get("estimated", {}).items():
            assert key in entry and len(reason) > 5


def test_numbers_carry_their_unit_in_the_name_of_the_key() -> None:
    counted = {
        "nvlink_links",
        "nvlink_generation",
        "planes",
        "gpus",
        "nics",
        "nvswitches",
        "psus",
        "servers",
        "power_shelves",
        "spare_psus",
    }
    for kind in hardware().values():
        for entry in kind.values():
            for key, value in entry.items():
                if isinstance(value, int | float) and key not in counted:
                    assert key.endswith(("_watts", "_bytes", "_per_second")), key


def test_what_presets_are_made_of_is_in_the_catalogue() -> None:
    for name in PRESETS:
        topo = preset(name)
        assert set(topo.nodes.gpu_model) <= set(hardware()["gpu"])
        assert set(topo.switches.model) <= set(hardware()["switch"])


def test_a_port_count_never_exceeds_the_capacity_of_the_switch() -> None:
    for key, entry in hardware()["switch"].items():
        for speed, count in entry["ports"].items():
            assert float(speed.removesuffix("G")) * 1e9 * count <= entry["capacity_bits_per_second"] * 1.001, key


def test_a_sites_own_file_adds_to_the_catalogue(tmp_path: Path, fresh: None) -> None:
    path = tmp_path / "own.toml"
    path.write_text(OWN)
    assert switch_ports("our-leaf", "400G") == 0
    extend(path)
    assert (switch_ports("our-leaf", "400G"), max_switch_ports("our-leaf")) == (32, 32)
    assert switch_ports("sn5600", "400G") == 128


def test_a_sites_own_file_may_be_named_in_the_environment(
    tmp_path: Path, fresh: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "own.toml"
    path.write_text(OWN)
    monkeypatch.setenv(catalog.VARIABLE, str(path))
    assert max_switch_ports("our-leaf") == 32


def test_every_mistake_is_told_with_file_key_value_and_expectation(tmp_path: Path) -> None:
    text = """
[gpu.x]
name = "X"
nvlink_links = 2.5
nvlink_link_bytes_per_second = "50e9"
power_limit_watts = 0
colour = "green"
source = ""
[server.y]
gpu = "unheard-of"
[blade.z]
"""
    assert problems(tmp_path, text) == [
        "own.toml: gpu.x.nvlink_links: 2.5: expected a whole number of at least 0",
        "own.toml: gpu.x.nvlink_link_bytes_per_second: '50e9': expected a number of at least 0",
        "own.toml: gpu.x.power_limit_watts: 0: expected a number above 0",
        "own.toml: gpu.x.colour: 'green': unknown key; a gpu has name, source, conflicts, estimated, nvlink_links, "
        "nvlink_link_bytes_per_second, power_limit_watts, least_power_limit_watts, memory_bytes, nvlink_generation",
        "own.toml: gpu.x.source: '': expected a text",
        "own.toml: server.y: name is missing: expected a text",
        "own.toml: server.y: source is missing: expected a text",
        "own.toml: server.y: gpus is missing: expected a whole number of at least 1",
        "own.toml: server.y: nic is missing: expected the key of a nic in the catalogue",
        "own.toml: server.y: nics is missing: expected a whole number of at least 0",
        "own.toml: server.y: nic_bits_per_second is missing: expected a number above 0",
        "own.toml: server.y: nvswitches is missing: expected a whole number of at least 0",
        "own.toml: server.y.gpu: 'unheard-of': expected the key of a gpu in the catalogue",
        "own.toml: blade: unknown kind; expected one of gpu, nic, switch, server, rack, power_shelf",
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[gpu.x", "not TOML"),
        ("gpu = 3", "expected tables such as [gpu.my-gpu]"),
        ("[gpu]\nx = 3", "expected a table"),
        (OWN.replace("= 32", '= "many"'), 'expected a table of speeds and counts such as { "400G" = 64 }'),
        (OWN + 'estimated = { weight = "guess" }', "expected a table of keys of this entry"),
        (OWN + 'conflicts = "none"', "expected a list of texts"),
        (OWN.replace("12.8e12", "nan"), "expected a number above 0"),
        (OWN.replace("12.8e12", "true"), "expected a number above 0"),
    ],
)
def test_a_malformed_entry_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    assert any(reason in p for p in problems(tmp_path, text))


def test_a_malformed_file_changes_nothing(tmp_path: Path, fresh: None) -> None:
    path = tmp_path / "own.toml"
    path.write_text("[gpu.x]")
    with pytest.raises(InputError):
        extend(path)
    assert "x" not in hardware()["gpu"]


def test_a_missing_file_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone\.toml: the catalogue file cannot be read: No such file"):
        read([tmp_path / "gone.toml"])


def test_listing_presets_loads_neither_the_catalogue_nor_numpy() -> None:
    code = "import sys, twin.topology.presets; print({'numpy', 'twin.catalog', 'pydantic'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "set()"
