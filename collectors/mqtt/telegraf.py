"""Telegraf's JSON output format: one metric, or a batch of them, a message.

Format: Telegraf, plugins/serializers/json. A timestamp is a whole number whose unit the message does not tell
(`json_timestamp_units`); its size does, for all times between 1973 and 5138.
"""

from __future__ import annotations

from typing import Any

import msgspec

from collectors.mqtt.record import Record

_NS = ((10**11, 10**9), (10**14, 10**6), (10**17, 10**3), (2**63, 1))  # below this: ns a unit


class _Metric(msgspec.Struct):
    name: str
    tags: dict[str, str]
    fields: dict[str, Any]
    timestamp: float | int | None = None


class _Batch(msgspec.Struct):
    metrics: list[msgspec.Raw]


_METRIC = msgspec.json.Decoder(_Metric)
_BATCH = msgspec.json.Decoder(_Batch)


def parse(payload: bytes) -> tuple[list[Record], list[str]]:
    """The records of a payload, and a line for each part that is none."""
    parts: list[msgspec.Raw | bytes] = [payload]
    try:
        parts = list(_BATCH.decode(payload).metrics)
    except msgspec.ValidationError:  # JSON, but no batch
        pass
    except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
        return [], [f"not JSON of Telegraf: {problem}"]
    records, problems = [], []
    for part in parts:
        try:
            metric = _METRIC.decode(part)
            records.append(Record(metric.name, metric.tags, metric.fields, _time(metric.timestamp)))
        except (msgspec.MsgspecError, UnicodeDecodeError, ValueError) as problem:
            problems.append(f"not a metric of Telegraf: {problem}")
    return records, problems


def _time(stamp: float | None) -> int | None:
    """Nanoseconds. Raises ValueError for what is no time."""
    if stamp is None:
        return None
    for limit, unit in _NS:
        if 0 < stamp < limit:
            return int(stamp * unit) if isinstance(stamp, int) else round(stamp * unit / 1000) * 1000
    raise ValueError(f"timestamp {stamp!r}, expected the time since 1970")
