"""What all tests share: which services they need, and that CI skips none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable

import pytest

# Debian package -> a program it brings
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
}
_PATH = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() in ("1", "true", "yes")


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
        missing = [name for name in marker.args if shutil.which(PROGRAMS[name], path=_PATH) is None]
        if missing:
            give_up(f"not installed: {', '.join(missing)} (apt-get install {' '.join(missing)})")
