"""The speed of a bond: what its active members have together.

Linux Documentation/networking/bonding.rst and drivers/net/bonding/bond_sysfs*.c.
"""

from __future__ import annotations

from pathlib import Path

from collectors.sysfs import entries, read, whole


def is_bond(interface: Path) -> bool:
    """True for the interface of a bond (not for its members)."""
    return entries(interface / "bonding") is not None


def members(interface: Path) -> list[Path]:
    """The interfaces a bond is made of."""
    names = (read(interface / "bonding/slaves") or "").split()
    return [interface.parent / name for name in names if "/" not in name]


def bond_speed(interface: Path) -> int | None:
    """Bits/s of the members that carry traffic. None where one of those has no known speed, or there is none.

    A member counts when its link is up (`mii_status`) and it is no backup (`state`), also with LACP, where `backup`
    stands for a member outside the active aggregator.
    """
    total = 0
    for member in members(interface):
        if read(member / "bonding_slave/mii_status") == "up" and read(member / "bonding_slave/state") == "active":
            megabits = whole(read(member / "speed"))
            if megabits is None or not 0 < megabits < 2**31 - 1:
                return None
            total += megabits
    return total * 1_000_000 or None
