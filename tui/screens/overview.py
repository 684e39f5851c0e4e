"""View 1: the verdict, the planes, the GPUs, what is broken, and where the data comes from."""

from __future__ import annotations

from collections.abc import Iterable

from textual.containers import Container
from textual.widget import Widget

from tui import layout
from tui.rows.gpus import gpu_classes
from tui.rows.interfaces import rows_wanted
from tui.rows.sources import troubled
from tui.screens.base import set_height
from tui.screens.listing import ListingScreen
from tui.shown import Shown
from tui.widgets.gpus import GpuBandwidth, HostMap
from tui.widgets.interfaces import Interfaces
from tui.widgets.leafmap import LinkList
from tui.widgets.planes import PlaneStrips
from tui.widgets.sources import Sources
from tui.widgets.verdict import Verdict


class OverviewScreen(ListingScreen):
    DEFAULT_CSS = """
    OverviewScreen #columns { height: 1fr; layout: vertical; overflow: hidden; }
    OverviewScreen #left, OverviewScreen #right { height: auto; }
    OverviewScreen.-two #columns { layout: horizontal; }
    OverviewScreen.-two #left { width: 3fr; height: 1fr; margin-right: 2; }
    OverviewScreen.-two #right { width: 2fr; height: 1fr; }
    """
    view = "overview"

    def __init__(self) -> None:
        super().__init__()
        self.incidents.preview = True
        self.verdict = Verdict()
        self.interfaces = Interfaces()
        self.strips = PlaneStrips()
        self.gpus = GpuBandwidth()
        self.hosts = HostMap()
        self.links = LinkList(everywhere=True)
        self.sources = Sources()

    def body(self) -> Iterable[Widget]:
        yield self.verdict
        left = Container(self.interfaces, self.strips, self.gpus, self.hosts, self.links, id="left")
        yield Container(left, Container(self.incidents, self.sources, id="right"), id="columns")

    def arrange_body(self, shown: Shown) -> None:
        snapshot = shown.snapshot
        width, height = self.app.size
        if snapshot is None:
            plan = layout.overview(width, height, 1, 2, 0, 0)
        else:
            classes = len(gpu_classes(snapshot.gpu_bandwidth, 6))
            hosts = len(snapshot.topology.nodes.name)
            sources, troubles = len(snapshot.sources), len(troubled(snapshot, dict(shown.reasons)))
            if snapshot.planes or not snapshot.topology.port_names:
                plan = layout.overview(width, height, len(snapshot.planes), classes, sources, hosts, troubles)
            else:
                wanted = rows_wanted(snapshot, shown.about, width)
                plan = layout.own_host(height, wanted, bool(snapshot.topology.gpu_names), sources, troubles)
        self.set_class(plan.two_columns, "-two")
        self.strips.charts, self.incidents.two_lines = plan.charts, plan.two_lines
        set_height(self.verdict, plan.verdict)
        set_height(self.interfaces, plan.interfaces, plan.gap)
        set_height(self.strips, plan.planes, plan.gap)
        set_height(self.gpus, plan.gpus, plan.gap)
        set_height(self.hosts, plan.hosts, plan.gap)
        set_height(self.links, plan.links, plan.gap)
        set_height(self.incidents, plan.incidents, plan.gap)
        set_height(self.sources, plan.sources, plan.gap)
