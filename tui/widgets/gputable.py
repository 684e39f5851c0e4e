"""All GPUs of the fabric."""

from __future__ import annotations

from tui.rows.gputable import gpu_index, gpu_table
from tui.rows.table import Table
from tui.widgets.table import TablePanel
from twin.snapshot import Snapshot


class GpuTable(TablePanel):
    def table(self, snapshot: Snapshot) -> Table:
        return gpu_table(snapshot, gpu_index(snapshot.topology))
