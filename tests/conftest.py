"""What all tests share: which services they need, and that CI skips none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

# Debian package -> a program it brings, or a pattern of files
PROGRAMS = {
    "ibsim-utils": "ibsim",
    "opensm": "opensm",
    "infiniband-diags": "ibnetdiscover",
    "iproute2": "ip",
    "iperf3": "iperf3",
    "nftables": "nft",
    "ethtool": "ethtool",
    "lldpd": "lldpd",
    "tmux": "tmux",
    "openssl": "openssl",
    "snmpd": "snmpd",
    "mosquitto": "mosquitto",
    "prometheus": "prometheus",
    "prometheus-node-exporter": "prometheus-node-exporter",
    "chromium-headless-shell": "chromium-headless-shell",
    "python3-simgrid": "/usr/lib/python3/dist-packages/simgrid.*.so",
}
_PATH = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() in ("1", "true", "yes")


def _installed(program: str) -> bool:
    if "/" in program:
        return any(Path("/").glob(program.lstrip("/")))
    return shutil.which(program, path=_PATH) is not None


def give_up(reason: str) -> None:
    if in_ci():
        pytest.fail(f"{reason} (in CI every service test must run)", pytrace=False)
    pytest.skip(reason)


@pytest.fixture
def unavailable() -> Callable[[str], None]:
    """Call with a reason: skips the test, or fails it in CI, where everything must run."""
    return give_up


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("service"):
        missing = [name for name in marker.args if not _installed(PROGRAMS[name])]
        if missing:
            give_up(f"not installed: {', '.join(missing)} (apt-get install {' '.join(missing)})")
