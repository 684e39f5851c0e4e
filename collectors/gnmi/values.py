"""What a value of a gNMI update may mean. Whatever cannot be read is unknown (None, NaN), never zero."""

from __future__ import annotations

import math
import re
from typing import Any

import msgspec

from twin.frames import UNKNOWN_U64

# oper-status of openconfig-interfaces in which nothing passes; UNKNOWN says nothing
_DOWN = frozenset(("DOWN", "TESTING", "DORMANT", "NOT_PRESENT", "LOWER_LAYER_DOWN"))
_SPEED = re.compile(r"(?:SPEED_)?([1-9][0-9]{0,6})([MG])B?", re.IGNORECASE | re.ASCII)  # SPEED_400GB, SPEED_2500MB
_SCALE = {"M": 10**6, "G": 10**9}
_WHOLE = re.compile(r"[0-9]{1,20}", re.ASCII)  # 20 digits: 2^64 - 1
_LIMIT = int(UNKNOWN_U64)
_EXACT = 2**53  # floats above this have lost digits
_MOST_DIGITS = 18  # after the point of a decimal64 (RFC 7950, section 9.3)

_json = msgspec.json.Decoder()


def plain(value: Any) -> Any:
    """A TypedValue as Python has it: a number, text, a list, or what its JSON says; None where it says nothing."""
    kind = value.WhichOneof("value")
    if kind is None or kind in ("bytes_val", "proto_bytes"):
        return None
    held = getattr(value, kind)
    if kind == "json_val" or kind == "json_ietf_val":
        try:
            return _json.decode(held)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None
    if kind == "decimal_val":
        return _decimal(held.digits, held.precision)
    if kind == "leaflist_val":
        return [plain(element) for element in held.element]
    return held


def _decimal(digits: int, precision: int) -> int | float | None:
    if precision > _MOST_DIGITS:
        return None
    scale: int = 10**precision
    return digits // scale if digits % scale == 0 else digits / scale


def counter(value: Any) -> int | None:
    """A count, from a number or its digits (JSON of RFC 7951 has 64-bit numbers as text)."""
    if isinstance(value, str):
        value = int(value) if _WHOLE.fullmatch(value) else None
    elif isinstance(value, float):
        value = int(value) if value.is_integer() and abs(value) < _EXACT else None
    elif isinstance(value, list) and len(value) == 1:
        return counter(value[0])
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LIMIT:
        return value
    return None


def up(value: Any) -> float:
    """1, 0 or NaN from an oper-status."""
    word = _word(value)
    return 1.0 if word == "UP" else 0.0 if word in _DOWN else math.nan


def speed(value: Any) -> float:
    """Bits/s from an identity of ETHERNET_SPEED; NaN for SPEED_UNKNOWN and what is no such identity."""
    match = _SPEED.fullmatch(_word(value))
    return float(int(match[1]) * _SCALE[match[2]]) if match is not None else math.nan


def _word(value: Any) -> str:
    """An identity or enumeration without the module that JSON puts before it."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value.rpartition(":")[2].strip().upper() if isinstance(value, str) else ""
