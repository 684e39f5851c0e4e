"""What NVML says of hosts, as a wiring: this host's, and trays of one rack put together."""

from __future__ import annotations

from pathlib import Path

import pytest
from nvml_rig import eight, library, nvml

from collectors.build import this_host
from tests.rigs.nvml.rig import GEN5, Standin, gpu
from tui.main import run
from twin.site import load_site

__all__ = ["library", "nvml"]  # fixtures


def test_this_host_alone_is_discovered_with_its_board(nvml: Standin, tmp_path: Path) -> None:
    nvml.write(eight())
    out = tmp_path / "wiring.yaml"
    assert run(["topology", "discover", "--nvml", "this", "-o", str(out)]) == 0
    topo = load_site(out).topology
    assert topo.nodes.name == (this_host(),)
    assert (len(topo.gpu_names), len(topo.nvlink_names), topo.domains.speed.tolist()) == (8, 144, [25e9])
    assert set(topo.nodes.gpu_model) == {"h100"}


def test_what_two_trays_print_is_one_domain_in_one_rack(
    nvml: Standin, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nvml.write([gpu(i, gen=GEN5) for i in range(4)])
    options = []
    for host in ("n0", "n1"):
        assert run(["topology", "nvml", "--host", host]) == 0
        (tmp_path / f"{host}.json").write_text(capsys.readouterr().out)
        options += ["--nvml", f"{host}={tmp_path / host}.json"]
    out = tmp_path / "rack.yaml"
    assert run(["topology", "discover", *options, "-o", str(out)]) == 0
    topo = load_site(out).topology
    assert topo.domains.name == ("nvl-01234567-89ab-cdef-0000-000000000001-2",)
    assert (len(topo.domains.gpu_rows[0]), int(topo.domains.links_per_gpu[0])) == (8, 18)
    assert topo.racks.name == ("1820000000001",)


def test_without_a_driver_the_reason_is_one_line(nvml: Standin, capsys: pytest.CaptureFixture[str]) -> None:
    nvml.write([], "error nvmlInit 9")
    assert run(["topology", "nvml"]) == 3
    assert "driver is not loaded" in capsys.readouterr().err
