"""Host names that say they are no GPU hosts."""

from __future__ import annotations

import re

STORAGE = re.compile(r"stor|nfs|lustre|(?<![a-z])(oss|ost|mds)\d|ceph|weka|vast|beegfs|gpfs|ddn", re.IGNORECASE)
MANAGEMENT = re.compile(r"ufm|mgmt|mgt|manage|login|head|admin|subnet|(?<![a-z])sm\d", re.IGNORECASE)


def role_said(name: str) -> str | None:
    """`management` or `storage` where the name says so."""
    if MANAGEMENT.search(name):
        return "management"
    return "storage" if STORAGE.search(name) else None
