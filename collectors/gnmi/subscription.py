"""What is asked of a switch: all that is of use, and less where it has not all paths or cannot tell of changes."""

from __future__ import annotations

from typing import Any

from collectors.gnmi import messages as m

_COUNTERS = (("state/counters", m.SAMPLE),)
_PHY = (("ethernet/phy/state", m.SAMPLE), ("phy/fec/state", m.SAMPLE), ("phy/state", m.SAMPLE))
_STATUS, _SPEED, _NEGOTIATED = (
    "state/oper-status",
    "ethernet/state/port-speed",
    "ethernet/state/negotiated-port-speed",
)

# from all that is of use to the least that is; the first that a switch does not refuse is taken
WISHES: tuple[tuple[tuple[str, int], ...], ...] = (
    (*_COUNTERS, (_STATUS, m.ON_CHANGE), (_SPEED, m.ON_CHANGE), (_NEGOTIATED, m.ON_CHANGE), *_PHY),
    (*_COUNTERS, (_STATUS, m.ON_CHANGE), (_SPEED, m.ON_CHANGE)),
    (*_COUNTERS, (_STATUS, m.SAMPLE), (_SPEED, m.SAMPLE)),
    (*_COUNTERS, (_STATUS, m.SAMPLE)),
)
_PREFERRED = (m.PROTO, m.JSON_IETF, m.JSON)


def best_encoding(supported: list[int]) -> int:
    """The encoding to ask for: typed values where there are any; JSON_IETF where a switch does not say."""
    return next((e for e in _PREFERRED if e in supported), m.JSON_IETF)


def request(wish: int, encoding: int, interval: float) -> Any:
    """The SubscribeRequest of one of WISHES. interval: seconds between samples.

    Keys and origin are written out, though they may be left out: some switches need the one, some the other.
    """
    asked = m.SubscribeRequest()
    asked.subscribe.encoding = encoding
    for path, mode in WISHES[wish]:
        one = asked.subscribe.subscription.add(mode=mode)
        if mode == m.SAMPLE:
            one.sample_interval = round(interval * 1e9)
        one.path.origin = "openconfig"
        one.path.elem.add(name="interfaces")
        one.path.elem.add(name="interface").key["name"] = "*"
        for name in path.split("/"):
            one.path.elem.add(name=name)
    return asked
