"""Whether this host can read an InfiniBand fabric: tools, the way into it, a subnet manager that answers."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping
from pathlib import Path

from collectors.base import CollectorError
from collectors.doctor.check import Check
from collectors.sysfs import entries
from collectors.tools import find_tool, run_tool
from twin.errors import MissingTool

SECONDS = 10.0
_PACKAGE = "infiniband-diags"
_SM = re.compile(rb"sm lid (\d{1,5}) sm guid (0x[0-9a-f]{1,16})")


async def infiniband_checks(
    hardware: bool, *, dev: Path = Path("/dev"), env: Mapping[str, str] | None = None, seconds: float = SECONDS
) -> list[Check]:
    """hardware: whether an InfiniBand port was found here. env: environment of the tools. seconds: for an answer."""
    tools = _tools(hardware, env)
    manager = await _subnet_manager(hardware, env, seconds)
    return [tools, _umad(hardware, dev, answered=manager.state == "ok"), manager]


def _tools(hardware: bool, env: Mapping[str, str] | None) -> Check:
    missing = []
    for tool in ("ibnetdiscover", "iblinkinfo", "ibqueryerrors", "sminfo"):
        try:
            find_tool(tool, _PACKAGE, "to read an InfiniBand fabric", env)
        except MissingTool:
            missing.append(tool)
    if not missing:
        return Check(_PACKAGE, "ok", "installed")
    need = f"{', '.join(missing)} not found"
    advice = f"Install the package {_PACKAGE}."
    return Check(_PACKAGE, "missing" if hardware else "none", need, advice if hardware else None)


def _umad(hardware: bool, dev: Path, *, answered: bool) -> Check:
    """The character devices through which management packets go."""
    devices = sorted(n for n in entries(dev / "infiniband") or () if n.startswith("umad"))
    if answered and not devices:
        return Check("umad", "ok", "not in /dev, and not needed: a subnet manager answers")
    if not devices:
        advice = "Load the module: modprobe ib_umad. In a container, hand in /dev/infiniband." if hardware else None
        return Check("umad", "missing" if hardware else "none", f"no {dev}/infiniband/umad*", advice)
    closed = [n for n in devices if not os.access(dev / "infiniband" / n, os.R_OK | os.W_OK)]
    if closed:
        advice = 'Run as root, or let your group read and write them by a udev rule (SUBSYSTEM=="infiniband_mad").'
        return Check("umad", "missing", f"no permission for {', '.join(closed)}", advice)
    return Check("umad", "ok", ", ".join(devices))


def manager(stdout: bytes) -> str | None:
    """The subnet manager that sminfo tells of, None where it tells of none."""
    found = _SM.search(stdout)
    return None if found is None else f"LID {found[1].decode()}, GUID {found[2].decode()}"


def last_words(stderr: bytes) -> str:
    """The last line that a tool complained with, printable and short."""
    lines = stderr.decode("utf-8", "replace").strip().splitlines()
    text = " ".join(lines[-1].split())[:160] if lines else ""
    return "".join(c if c.isprintable() else "?" for c in text)


async def _subnet_manager(hardware: bool, env: Mapping[str, str] | None, seconds: float) -> Check:
    name = "subnet manager"
    try:
        tool = find_tool("sminfo", _PACKAGE, "to find the subnet manager", env)
        output = await run_tool([tool], seconds=seconds, slots=asyncio.Semaphore(1), env=env)
        found = manager(output.stdout)
        if output.status == 0 and found is not None:
            return Check(name, "ok", f"answers: {found}")
        said = last_words(output.stderr) or f"sminfo ended with {output.status} and told nothing"
    except MissingTool:
        said = "not asked: sminfo is not installed"
    except (CollectorError, OSError) as problem:
        said = str(problem)
    if not hardware:
        return Check(name, "none", "no InfiniBand here to ask")
    advice = (
        "See that the port is cabled and that a subnet manager (opensm, UFM, a switch's own) runs in this fabric."
    )
    return Check(name, "missing", said, advice)
