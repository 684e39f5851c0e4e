"""One host from NCCL's topology XML (NCCL_TOPO_DUMP_FILE, or a file that a cloud ships): GPUs and NICs on PCIe.

A document type declaration is refused, so no entity can expand and nothing else is ever read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import nan
from xml.parsers import expat

from twin.address import natural
from twin.errors import InputError
from twin.topology.importers.hostfacts import HostFacts, nearest
from twin.topology.importers.nvidia_smi import MOST_LINKS
from twin.topology.importers.source import shown

_GPU_CLASSES, _NIC_CLASS = ("0x0300", "0x0302"), "0x02"
_SPEED = {7: 25e9, 8: 25e9, 9: 25e9, 10: 50e9}  # of an NVLink, bytes/s in one direction, by compute capability
_MAX_DEPTH = 60
_NO_BRIDGE = 1000  # farther than any bridge is deep: only the host bridge, or nothing, is shared


@dataclass(slots=True)
class _Gpu:
    path: tuple[int, ...]
    dev: int | None = None
    links: int = 0
    sm: int = 0


@dataclass(slots=True)
class _Found:
    gpus: list[_Gpu] = field(default_factory=list)
    nics: list[tuple[tuple[int, ...], str]] = field(default_factory=list)  # (path, device name)
    hosts: set[str] = field(default_factory=set)


def parse(text: str, path: str) -> HostFacts:
    """What the XML says of its host. Raises InputError with line and column."""
    found = _walk(text, path)
    if not found.gpus:
        raise InputError(
            f"{path}: no GPUs; expected a NCCL topology with pci devices of class 0x0302 or gpu elements"
        )
    if len(found.hosts) > 1:
        raise InputError(f"{path}: {len(found.hosts)} hosts in one file; expected the dump of one host")
    gpus = sorted(found.gpus, key=lambda g: g.dev if g.dev is not None else 1000)
    close = [n for n in found.nics if any(_distance(gpu.path, n[0]) < _NO_BRIDGE - 1 for gpu in gpus)]
    found.nics = sorted(close or found.nics, key=lambda nic: natural(nic[1]))
    distances = [[_distance(gpu.path, where) for where, _ in found.nics] for gpu in gpus]
    chosen = nearest(distances, len(found.nics), _NO_BRIDGE)
    facts = HostFacts(len(gpus), [name for _, name in found.nics], chosen)
    if chosen is None and found.nics:
        facts.notes.append("NCCL topology: GPUs and NICs share no bridge, so it does not tell which NIC is whose")
    elif chosen is not None:
        facts.notes.append(
            "the NIC of a GPU is the one that shares the nearest PCIe bridge with it in the NCCL topology"
        )
    joined = [i for i, gpu in enumerate(gpus) if gpu.links]
    if len(joined) > 1:
        facts.groups = [(joined, min(max(gpus[i].links for i in joined), MOST_LINKS))]
        facts.speed = _SPEED.get(gpus[joined[0]].sm // 10, nan)
    return facts


def _distance(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    """How many bridges lie above `a` up to the one shared with `b`."""
    shared = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    if shared <= 1:
        return _NO_BRIDGE if not shared else _NO_BRIDGE - 1
    return max(len(a) - shared, 0)


def _walk(text: str, path: str) -> _Found:
    found, parser = _Found(), expat.ParserCreate()
    stack: list[tuple[str, dict[str, str]]] = []
    places: list[int] = []  # of cpu and pci elements around, by their order in the file
    count = 0

    def wrong(message: str) -> InputError:
        return InputError(f"{path}:{parser.CurrentLineNumber}:{parser.CurrentColumnNumber + 1}: {message}")

    def doctype(*_: object) -> None:
        raise wrong("a document type declaration; NCCL writes none, and it is not read")

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal count
        if not stack and tag != "system":
            raise wrong(f"expected <system>, found <{shown(tag)[1:-1]}>")
        if len(stack) >= _MAX_DEPTH:
            raise wrong(f"nested more than {_MAX_DEPTH} deep")
        stack.append((tag, attributes))
        if tag in ("cpu", "pci"):
            count += 1
            places.append(count)
        where = tuple(places)
        kind = attributes.get("class", "")
        if tag == "cpu" and "host_hash" in attributes:
            found.hosts.add(attributes["host_hash"])
        elif tag == "pci" and kind.startswith(_GPU_CLASSES):
            found.gpus.append(_Gpu(where))
        elif tag == "pci" and kind.startswith(_NIC_CLASS):
            found.nics.append((where, attributes.get("busid", f"nic{count}")[:40]))
        elif tag == "gpu":
            if not found.gpus or found.gpus[-1].path != where:
                found.gpus.append(_Gpu(where))
            found.gpus[-1].dev = _number(attributes.get("dev"))
            found.gpus[-1].sm = _number(attributes.get("sm")) or 0
        elif tag == "nvlink" and found.gpus and found.gpus[-1].path == where:
            found.gpus[-1].links += _number(attributes.get("count")) or 0
        elif tag == "net":
            name = attributes.get("name", f"nic{count}")[:40]
            if found.nics and found.nics[-1][0] == where and ":" in found.nics[-1][1]:
                found.nics[-1] = where, name
            else:
                found.nics.append((where, name))

    def end(tag: str) -> None:
        stack.pop()
        if tag in ("cpu", "pci"):
            places.pop()

    parser.StartDoctypeDeclHandler, parser.EntityDeclHandler = doctype, doctype
    parser.StartElementHandler, parser.EndElementHandler = start, end
    try:
        parser.Parse(text, True)
    except expat.ExpatError as problem:
        reason = expat.ErrorString(problem.code)
        raise InputError(f"{path}:{problem.lineno}:{problem.offset + 1}: not XML: {reason}") from problem
    except ValueError as problem:
        raise InputError(f"{path}: not XML: {problem}") from problem
    return found


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 7 else None
