"""Frames as exporters would have served them, as OpenMetrics text with times, for promtool to make blocks of."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

from twin.frames import NS, UNKNOWN_U64, Frame

# ours -> theirs, and what a value is divided by; node_exporter, snmp_exporter (IF-MIB) and dcgm-exporter
HOST = {
    "up": ("node_infiniband_state_id", {1.0: 4.0, 0.0: 1.0}),
    "speed_bits_per_second": ("node_infiniband_rate_bytes_per_second", 8),
    "tx_bytes": ("node_infiniband_port_data_transmitted_bytes_total", 1),
    "rx_bytes": ("node_infiniband_port_data_received_bytes_total", 1),
}
SWITCH = {
    "up": ("ifOperStatus", {1.0: 1.0, 0.0: 2.0}),
    "speed_bits_per_second": ("ifHighSpeed", 1e6),
    "tx_bytes": ("ifHCOutOctets", 1),
    "rx_bytes": ("ifHCInOctets", 1),
}
GPU = {
    "utilization_ratio": ("DCGM_FI_DEV_GPU_UTIL", 0.01),
    "power_watts": ("DCGM_FI_DEV_POWER_USAGE", 1),
    "temperature_celsius": ("DCGM_FI_DEV_GPU_TEMP", 1),
    "xid": ("DCGM_FI_DEV_XID_ERRORS", 1),
}
PROFILES = ["node-exporter-infiniband", "snmp-if-mib", "dcgm-exporter"]


def blocks(frames: Iterable[Frame], directory: Path) -> None:
    """Makes what Prometheus stores of these frames in `directory`/data."""
    families: dict[str, list[str]] = {}
    for frame in frames:
        time = f"{round(frame.time / NS, 3):.3f}"
        for metric, (series, by) in _table(frame).items():
            if metric not in frame.columns:
                continue
            for name, value in zip(frame.names, frame.columns[metric].tolist(), strict=True):
                if value != value or value == int(UNKNOWN_U64):
                    continue
                theirs = by.get(value, 0.0) if isinstance(by, dict) else value / by
                families.setdefault(series, []).append(f"{series}{{{_labels(frame.kind, name)}}} {theirs!r} {time}")
    text = directory / "history.om"
    text.write_text("\n".join(line for lines in families.values() for line in lines) + "\n# EOF\n")
    command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(text), str(directory / "data")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def _table(frame: Frame) -> dict[str, tuple[str, object]]:
    if frame.kind == "gpu":
        return GPU  # type: ignore[return-value]
    if frame.kind != "port":
        return {}
    return HOST if "/nic" in frame.names[0] else SWITCH  # type: ignore[return-value]


def _labels(kind: str, name: str) -> str:
    owner, *parts = name.split("/")
    if kind == "gpu":
        return f'Hostname="{owner}",gpu="{parts[0].removeprefix("gpu")}"'
    if len(parts) == 2:
        return f'instance="{owner}:9100",device="mlx5_{parts[0].removeprefix("nic")}",port="1"'
    return f'instance="{owner}",ifName="{parts[0]}"'
