"""The layout of a recorded trace, one MCAP file (mcap.dev), in one place for its writer and its reader.

    header       profile `fabrictwin`
    metadata     `fabrictwin`: format_version, program, topology (its name)
    attachments  `topology`: the explicit wiring as JSON; `site`: the site file as JSON, where there was one
    chunks       zstd, each at most two seconds of time, in order of arrival; frames are packed (`replay.packing`)
    metadata     `fabrictwin.totals`: frames, start, end (ns), only in a file that was closed
    summary      chunk index by time, statistics, channels

Channels: one a source and kind, topic `frames/SOURCE/KIND`, message encoding `fabrictwin.frame`, which is
the binary form that `twin.frames` describes; `incidents` and `notes` hold JSON. The log time of a message is
the event time of what it holds, its sequence number counts arrivals. Message indexes are left out: with
hundreds of channels they would cost more than they save, in the file and in the memory of a long recording.
"""

from __future__ import annotations

FORMAT_VERSION = 2
PROFILE = "fabrictwin"
METADATA = "fabrictwin"
TOTALS = "fabrictwin.totals"
TOPOLOGY, SITE = "topology", "site"

FRAME_ENCODING = "fabrictwin.frame"
PACKED_ENCODING = "fabrictwin.packed"
JSON_ENCODING = "json"
FRAMES_TOPIC, INCIDENTS_TOPIC, NOTES_TOPIC = "frames", "incidents", "notes"

MCAP_MAGIC = b"\x89MCAP0\r\n"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"

SUFFIXES: tuple[str, ...] = (".mcap", ".jsonl", ".jsonl.zst")
