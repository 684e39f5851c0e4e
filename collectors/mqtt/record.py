"""One reading as Telegraf and InfluxDB have it, before anybody knows what it means here."""

from __future__ import annotations

from typing import Any, NamedTuple


class Record(NamedTuple):
    """time: ns since the epoch, None where the sender gave none. fields: numbers, booleans and text."""

    measurement: str
    tags: dict[str, str]
    fields: dict[str, Any]
    time: int | None
