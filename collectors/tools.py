"""Running other programs: found first, never more than a few at once, killed when their time is up."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from collectors.base import CollectorError
from twin.errors import MissingTool

AT_ONCE = 4  # the InfiniBand simulator serves ten clients and a killed one leaks its place; a real fabric is busy too
_GRACE_S = 2.0
_PATH = "/usr/sbin:/sbin"  # where infiniband-diags live, which cron and services leave out of PATH


@dataclass(frozen=True, slots=True)
class Output:
    """What a program printed. Its exit status is not judged here: for some tools 1 means `found something`."""

    stdout: bytes
    stderr: bytes
    status: int


def find_tool(name: str, package: str, purpose: str, env: Mapping[str, str] | None = None) -> str:
    """The path of a program. Raises MissingTool, which says what it is for and what to install."""
    path = (env or {}).get("PATH") or f"{os.environ.get('PATH', os.defpath)}:{_PATH}"
    found = shutil.which(name, path=path)
    if found is None:
        raise MissingTool(name, package, purpose)
    return found


async def run_tool(
    command: Sequence[str],
    *,
    seconds: float,
    slots: asyncio.Semaphore,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
) -> Output:
    """Runs a program to its end. Raises CollectorError where it takes longer than `seconds`.

    It gets a process group of its own, and the whole group is ended when time is up or the caller is cancelled.
    """
    async with slots:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, **(env or {})},
            cwd=cwd,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(seconds):
                stdout, stderr = await process.communicate()
        except TimeoutError as problem:
            tool = Path(command[0]).name
            raise CollectorError(f"{tool} gave no answer within {seconds:g} s and was stopped") from problem
        finally:
            if process.returncode is None:
                await _end(process)
        return Output(stdout, stderr, process.returncode or 0)


async def _end(process: asyncio.subprocess.Process) -> None:
    for kind in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, kind)
        try:
            async with asyncio.timeout(_GRACE_S):
                await process.wait()
            return
        except TimeoutError:
            continue
