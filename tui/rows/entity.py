"""The page of one part of a fabric: what is read of it, its neighbours, its incidents, its last minutes."""

from __future__ import annotations

import numpy as np

from tui.ring import Ring
from tui.rows.gputable import STATES, GpuReadings, gpu_index, nvlink_counts
from tui.rows.incidents import incident_line
from tui.rows.page import PageLine, head_line, history_lines, reading_lines, share_or_none, title_line
from tui.rows.parts import feed_line, gpu_line, node_line, port_line, psu_line, value
from tui.rows.powertable import watts
from tui.text import count, plural
from twin.address import inside
from twin.incident import Incident
from twin.snapshot import Snapshot
from twin.topology.model import Topology

_INCIDENTS = 8  # on a page; more are counted
_SUPPLIES = 10

Parts = tuple[list[PageLine], list[PageLine]]  # what it is and how it does; then what is next to it or in it


def page_of(topo: Topology, address: str) -> tuple[str, str] | None:
    """(kind, address) of the page that shows an address: a feed is on that of its rack, a supply with its holder."""
    for kind in ("gpu", "node", "rack"):
        if address in topo.rows(kind):
            return kind, address
    if address.startswith("domain:") and address[7:] in topo.rows("domain"):
        return "domain", address
    if (feed := topo.rows("feed").get(address)) is not None:
        return "rack", topo.racks.name[topo.feeds.rack[feed]]
    if (psu := topo.rows("psu").get(address)) is not None:
        node = int(topo.psus.node[psu])
        return ("node", topo.nodes.name[node]) if node >= 0 else ("rack", topo.racks.name[topo.psus.rack[psu]])
    return None


def entity_page(snapshot: Snapshot, address: str, ring: Ring, width: int) -> list[PageLine]:
    """All lines of a page. ring: takes the newest readings of it, and shows the last ones."""
    found = page_of(snapshot.topology, address)
    if found is None:
        return [PageLine([(f" {address} is not in this fabric", "dim")])]
    kind, address = found
    r = GpuReadings(snapshot, gpu_index(snapshot.topology))
    row = snapshot.topology.rows(kind)[address.removeprefix("domain:")]
    told = incident_lines(snapshot, address, width)
    if kind == "domain":
        return told
    what, neighbours = {"gpu": _gpu, "node": _node, "rack": _rack}[kind](r, row, ring, width)
    return what + told + neighbours


# --- one kind each ---


def _gpu(r: GpuReadings, gpu: int, ring: Ring, width: int) -> Parts:
    snapshot, topo = r.snapshot, r.snapshot.topology
    node, nic, domain = (int(of[gpu]) for of in (topo.gpus.node, topo.gpus.nic, topo.gpus.domain))
    name, host = topo.gpu_names[gpu], topo.nodes.name[node]
    ports = _ports_of(topo, nic)
    sent = value(snapshot.port.get("tx_bytes"), ports[0]) * 8 if len(ports) else np.nan
    if len(ports) > 1:
        rates = [value(snapshot.port.get("tx_bytes"), port) * 8 for port in ports]
        sent = float(np.nansum(rates)) if not np.isnan(rates).all() else np.nan
    designed = float(np.nansum(topo.port_speed[ports])) if len(ports) else 1.0
    past = (
        ("busy", float(r.use[gpu]), 1.0, "ratio"),
        ("power", float(r.watts[gpu]), float(r.limit[gpu]), "watts"),
        ("network sent", sent, designed, "bits"),
    )
    word, glyph, style = STATES[r.states[gpu]]
    lines = [title_line(f"GPU {name}", topo.nodes.gpu_model[node], f"{glyph} {word}", style, r.age[gpu], width)]
    lines += history_lines(name, past, snapshot, ring, width)
    extra = {
        "network bandwidth left": share_or_none(float(r.network[gpu]), nic < 0),
        "NVLinks up": share_or_none(float(r.nvlink[gpu]), topo.nvlinks_per_gpu[gpu] == 0),
    }
    lines += reading_lines("gpu", snapshot.gpu, gpu, width, extra)
    near = [head_line("NEIGHBOURS", width), PageLine([("node   ", "dim"), *node_line(r, node)], host)]
    if topo.nodes.rack[node] >= 0:
        rack = topo.racks.name[topo.nodes.rack[node]]
        near.append(PageLine([("rack   ", "dim"), ("  ", "text"), (rack, "text")], rack))
    if domain >= 0:
        mine = topo.domains.gpu_rows[domain]
        said = f"{topo.domains.name[domain]}  {plural(len(mine), 'GPU')}, {_nvlinks(snapshot, gpu)}"
        near.append(PageLine([("NVLink ", "dim"), ("  ", "text"), (said, "text")], _domain(topo, domain)))
    return lines, near + [PageLine([("port   ", "dim"), *port_line(snapshot, port)]) for port in ports]


def _node(r: GpuReadings, node: int, ring: Ring, width: int) -> Parts:
    snapshot, topo = r.snapshot, r.snapshot.topology
    nodes, name = topo.nodes, topo.nodes.name[node]
    gpus = range(int(nodes.gpu0[node]), int(nodes.gpu0[node] + nodes.n_gpus[node]))
    drawn = value(snapshot.node.get("power_watts"), node)
    use = r.use[gpus.start : gpus.stop]
    busy = float(np.nanmean(use)) if len(use) and not np.isnan(use).all() else np.nan
    summed = r.watts[gpus.start : gpus.stop]
    gpu_watts = float(summed.sum()) if len(summed) else np.nan
    past = [("node power", drawn, np.nan, "watts"), ("GPU power", gpu_watts, np.nan, "watts")]
    past.append(("GPUs busy", busy, 1.0, "ratio"))
    what = f"{plural(len(gpus), 'GPU')} {nodes.gpu_model[node]}" if len(gpus) else "no GPUs"
    read = value(snapshot.age.get("node"), node)
    oldest = r.age[gpus.start : gpus.stop]
    read = read if read == read else float(np.nanmax(oldest)) if len(oldest) and not np.isnan(oldest).all() else read
    lines = [title_line(f"NODE {name}", what, "", "text", read, width)]
    lines += history_lines(name, past, snapshot, ring, width)
    lines += reading_lines("node", snapshot.node, node, width, {})
    near = []
    if nodes.rack[node] >= 0:
        rack = topo.racks.name[nodes.rack[node]]
        near += [head_line("NEIGHBOURS", width), PageLine([("rack  ", "dim"), (rack, "text")], rack)]
    if len(gpus):
        near.append(head_line("GPUS", width))
        near += [PageLine(gpu_line(r, gpu), topo.gpu_names[gpu]) for gpu in gpus]
    nics = range(int(nodes.nic0[node]), int(nodes.nic0[node] + nodes.n_nics[node]))
    ports = [port for nic in nics for port in _ports_of(topo, nic)]
    if ports:
        near.append(head_line("PORTS", width))
        near += [PageLine(port_line(snapshot, port)) for port in ports]
    return lines, near + _supplies(snapshot, int(nodes.psu0[node]), int(nodes.n_psus[node]), width)


def _rack(r: GpuReadings, rack: int, ring: Ring, width: int) -> Parts:
    snapshot, topo = r.snapshot, r.snapshot.topology
    name = topo.racks.name[rack]
    nodes = np.flatnonzero(topo.nodes.rack == rack).tolist()
    power = snapshot.power
    at = power.names.index(name) if name in power.names else -1
    load, gives, left, after = (
        float(of[at]) if at >= 0 else np.nan for of in (power.watts, power.capacity, power.headroom, power.after_loss)
    )
    gpus = int(topo.nodes.n_gpus[nodes].sum()) if nodes else 0
    redundancy = topo.racks.redundancy[rack]
    what = f"{plural(len(nodes), 'node')}, {plural(gpus, 'GPU')}, redundancy {redundancy}"
    lines = [title_line(f"RACK {name}", what, "", "text", np.nan, width)]
    lines += history_lines(name, [("power", load, gives, "watts")], snapshot, ring, width)
    extra = {
        "draws": watts(load),
        "gives": watts(gives),
        "left": watts(left),
        "left after one more loss": watts(after),
    }
    lines += reading_lines("", {}, 0, width, extra)
    near = []
    feeds = np.flatnonzero(topo.feeds.rack == rack).tolist()
    if feeds:
        near.append(head_line("FEEDS", width))
        near += [PageLine(feed_line(snapshot, feed)) for feed in feeds]
    near += _supplies(snapshot, int(topo.racks.psu0[rack]), int(topo.racks.n_psus[rack]), width)
    if nodes:
        near.append(head_line("NODES", width))
        near += [PageLine(node_line(r, node), topo.nodes.name[node]) for node in nodes]
    return lines, near


# --- pieces ---


def _ports_of(topo: Topology, nic: int) -> list[int]:
    if nic < 0:
        return []
    first = int(topo.nics.port0[nic])
    return list(range(first, first + int(topo.nics.n_ports[nic])))


def _domain(topo: Topology, domain: int) -> str:
    return f"domain:{topo.domains.name[domain]}"


def _nvlinks(snapshot: Snapshot, gpu: int) -> str:
    """`17 of 18 links of this GPU up, 3 errors/s`."""
    index = gpu_index(snapshot.topology)
    first, end = (int(of[gpu]) for of in index.nvlinks)
    up, known = (int(of[gpu]) for of in nvlink_counts(snapshot, index))
    errors = snapshot.nvlink.get("errors")
    rate = np.nansum(errors[first:end]) if errors is not None and len(errors) else 0.0
    said = f"{up if known else '?'} of {plural(end - first, 'link')} of this GPU up"
    said += f", ? {end - first - known} unknown" if known < end - first else ""
    return said + (f", {rate:.3g} errors/s" if rate > 0 else "")


def _supplies(snapshot: Snapshot, first: int, number: int, width: int) -> list[PageLine]:
    if not number:
        return []
    up = snapshot.psu.get("up")
    rows = list(range(first, first + number))
    if (
        up is not None and number > _SUPPLIES
    ):  # those of shelves are many: the ones that give power are told by number
        rows.sort(key=lambda row: up[row] == 1)
    shown = [row for i, row in enumerate(rows) if i < _SUPPLIES or up is None or up[row] != 1]
    lines = [head_line("SUPPLIES", width), *(PageLine(psu_line(snapshot, row)) for row in shown)]
    more = number - len(shown)
    return [*lines, PageLine([(f"and {count(more)} more that are up", "dim")])] if more else lines


# --- incidents ---


def incidents_of(snapshot: Snapshot, address: str) -> list[Incident]:
    """Those whose cause is in it, or that affect it or what it is part of; open first."""
    topo = snapshot.topology
    scope = frozenset((address, *_children(topo, address)))
    if address.startswith("domain:"):  # what else its nodes suffer has nothing to do with it
        return [i for i in snapshot.incidents if inside(i.cause.partition("+")[0], scope)]
    around = scope | {address.partition("/")[0]}

    def about(incident: Incident) -> bool:
        if inside(incident.cause, scope) or incident.cause in around:
            return True
        return any(inside(name, scope) or name in around for name in incident.affected.names)

    return [incident for incident in snapshot.incidents if about(incident)]


def _children(topo: Topology, address: str) -> list[str]:
    """What belongs to it although its address does not say so: nodes of a rack; GPUs and chips of a domain."""
    if (rack := topo.rows("rack").get(address)) is not None:
        return [topo.nodes.name[node] for node in np.flatnonzero(topo.nodes.rack == rack).tolist()]
    if address.startswith("domain:") and (domain := topo.rows("domain").get(address[7:])) is not None:
        names = topo.gpu_names
        return [names[g] for g in topo.domains.gpu_rows[domain].tolist()] + list(topo.domains.switches[domain])
    return []


def incident_lines(snapshot: Snapshot, address: str, width: int) -> list[PageLine]:
    found = incidents_of(snapshot, address)
    lines = [head_line("INCIDENTS", width)]
    for incident in found[:_INCIDENTS]:
        line = incident_line(incident, snapshot.time, width - 1, selected=False)
        lines.append(PageLine(line[1:], incident=incident.id))
    if len(found) > _INCIDENTS:
        lines.append(PageLine([(f"and {count(len(found) - _INCIDENTS)} more: see view 6", "dim")]))
    if not found:
        lines.append(PageLine([("none known", "dim")]))
    return lines
