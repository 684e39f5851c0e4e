"""How much of a recording is kept, apart from what records: a command reads its options without the recorder."""

from __future__ import annotations

from dataclasses import dataclass

from twin.errors import InputError


@dataclass(frozen=True, slots=True)
class Keeping:
    """When a piece ends and which ones are kept: bytes and seconds; None where there is no limit.

    rotate_*: of one piece. keep_*: of all pieces together, and of the end of the oldest one. min_free: of the disk.
    Raises InputError where the limits contradict each other.
    """

    rotate_bytes: int | None = None
    rotate_seconds: float | None = None
    keep_bytes: int | None = None
    keep_seconds: float | None = None
    min_free: int | None = None

    def __post_init__(self) -> None:
        if (self.keep_bytes or self.keep_seconds) and not self.in_pieces:
            raise InputError("--keep-size and --keep-for need pieces: give --rotate-size or --rotate-every")
        if self.keep_bytes and self.rotate_bytes and self.keep_bytes < self.rotate_bytes:
            raise InputError("--keep-size is less than one piece of --rotate-size")

    @property
    def in_pieces(self) -> bool:
        return self.rotate_bytes is not None or self.rotate_seconds is not None
