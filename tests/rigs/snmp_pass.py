"""Answers snmpd's pass_persist protocol from a JSON file {oid: [type, value]}, read anew whenever it changes.

Run by snmpd as a program of its own: `python snmp_pass.py FILE`.
"""

from __future__ import annotations

import json
import sys
from bisect import bisect_right
from pathlib import Path

Key = tuple[int, ...]


def key(oid: str) -> Key:
    return tuple(int(part) for part in oid.strip().strip(".").split("."))


def main(path: Path) -> None:
    seen = 0
    cells: dict[Key, list[object]] = {}
    order: list[Key] = []
    while word := sys.stdin.readline().strip():
        if word == "PING":
            print("PONG", flush=True)
            continue
        at = key(sys.stdin.readline())
        if (now := path.stat().st_mtime_ns) != seen:
            seen = now
            cells = {key(oid): cell for oid, cell in json.loads(path.read_text()).items()}
            order = sorted(cells)
        if word == "getnext":
            place = bisect_right(order, at)
            at = order[place] if place < len(order) else ()
        if at in cells:
            print("." + ".".join(map(str, at)), *cells[at], sep="\n", flush=True)
        else:
            print("NONE", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
