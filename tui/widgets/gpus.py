"""How much bandwidth the GPUs have, and where the impaired ones sit."""

from __future__ import annotations

from tui.rows.gpus import gpu_lines, host_lines
from tui.shown import Shown
from tui.text import Line
from tui.widgets.panel import Panel


class GpuBandwidth(Panel):
    def lines(self, shown: Shown, width: int, height: int) -> list[Line]:
        return gpu_lines(shown.snapshot, width, height)


class HostMap(Panel):
    def lines(self, shown: Shown, width: int, height: int) -> list[Line]:
        return host_lines(shown.snapshot, width, height)
