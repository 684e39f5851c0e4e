"""Topics of an agent, and what it says of itself there: retained, and as its last will.

fabrictwin/v1/SITE/POD/NODE/KIND      frames of one kind of entity, not retained
fabrictwin/v1/SITE/POD/NODE/STATUS    JSON, retained: online with identity, or offline
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec
import numpy as np

from twin.errors import InputError
from twin.frames import Frame
from twin.sources import SUPERVISOR

PREFIX = "fabrictwin/v1"
STATUS = "STATUS"
TOLD = 2.0  # failures that an agent which is gone stands for: the twin believes two, and the broker is sure

_LEVELS = 6  # of a topic: the prefix has two, then site, pod, node, kind
_UNFIT = re.compile(r"[/+#\x00-\x20\x7f]+")


class Status(msgspec.Struct, frozen=True):
    """What an agent says of itself. sources: interval of each source in seconds. why: of offline, for people."""

    state: Literal["online", "offline"]
    node: str
    sources: dict[str, float]
    version: str = ""
    why: str = ""


_DECODER = msgspec.json.Decoder(Status)


def agent_topic(site: str, pod: str, node: str, kind: str) -> str:
    """The topic of one kind of frames, or of the status, of a node."""
    return "/".join((PREFIX, *(_part(p) for p in (site, pod, node, kind))))


def _part(name: str) -> str:
    return _UNFIT.sub("_", name) or "unnamed"


def is_status(topic: str) -> bool:
    return topic.endswith("/" + STATUS)


def status_filter(topic: str) -> str | None:
    """The statuses within what a topic filter asks for; None where it does not reach down to any."""
    parts = topic.split("/")
    if parts[-1] == "#":
        parts[-1:] = ["+"] * (_LEVELS + 1 - len(parts))
    if len(parts) != _LEVELS or parts[-1] not in ("+", STATUS):
        return None
    return "/".join((*parts[:-1], STATUS))


def encode_status(status: Status) -> bytes:
    return msgspec.json.encode(status)


def status_frame(payload: bytes, time: int, source: str) -> Frame | None:
    """A frame of kind `source` that says how the agent's sources do, as of `time`; None for one that was taken back.

    Raises InputError where the payload is no status.
    """
    if not payload:  # an empty retained message removes the one before it
        return None
    try:
        status = _DECODER.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
        raise InputError(f"not a status: {problem}") from problem
    wrong = [name for name in status.sources if not may_be_called(name)]
    if wrong:
        raise InputError(f"not a status: a source cannot be named {wrong[0]!r}")
    n, online = len(status.sources), status.state == "online"
    columns = {
        "up": np.full(n, float(online)),
        "interval_seconds": np.array(list(status.sources.values()), dtype=np.float64),
        "failures": np.full(n, 0.0 if online else TOLD),
    }
    return Frame(time, source, "source", tuple(status.sources), columns)


def may_be_called(source: str) -> bool:
    """Whether a sender may give its source this name: one line, and not that of the watcher's own frames."""
    return bool(source) and source != SUPERVISOR and source.isprintable()
