"""Files to a Topology: one source of the wiring, and what is known of single hosts beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

from twin.address import clean, natural
from twin.errors import InputError
from twin.topology.importers.assemble import assemble
from twin.topology.importers.hostfacts import HostFacts, refine, topology_of
from twin.topology.importers.sketch import Sizes, Sketch
from twin.topology.importers.source import printable, read_text
from twin.topology.model import Topology

_PARSERS = {  # option -> (form, module, function)
    "netq": ("JSON", "netq", "parse"),
    "air": ("JSON", "air", "parse"),
    "spectrum-x": ("JSON", "spectrum_x", "parse"),
    "containerlab": ("YAML", "containerlab", "parse"),
    "topograph": ("YAML", "topograph", "parse"),
}
FABRIC_SOURCES = ("ibnetdiscover", "lldp", "slurm", *_PARSERS)
HOST_SOURCES = {"nvidia-smi": ("text", "nvidia_smi"), "nccl": ("XML", "nccl"), "nvml": ("JSON", "nvml")}


@dataclass(frozen=True, slots=True)
class Request:
    """What to read. sources: option name -> its values as given, `FILE`, `HOST=FILE` or `PLANE=FILE`.

    facts: host name or pattern -> what is known of it already.
    """

    sources: Mapping[str, Sequence[str]]
    sizes: Sizes = field(default_factory=Sizes)
    name: str | None = None
    facts: Mapping[str, HostFacts] = field(default_factory=dict)


def discover(request: Request) -> Topology:
    """The wiring that the files of a request show. Raises InputError, printable whatever the files hold."""
    try:
        return _discover(request)
    except InputError as problem:
        raise InputError([printable(text) for text in problem.problems]) from problem


def _discover(request: Request) -> Topology:
    fabrics = [name for name in FABRIC_SOURCES if request.sources.get(name)]
    if len(fabrics) > 1:
        raise InputError(f"--{fabrics[0]} and --{fabrics[1]}: expected one source of the wiring")
    facts = _host_facts(request, bool(fabrics))
    if not fabrics and not facts:
        options = ", ".join(f"--{name}" for name in (*FABRIC_SOURCES, *HOST_SOURCES))
        raise InputError(f"nothing to discover from; expected one of {options}")
    if fabrics:
        topo = _fabric(fabrics[0], request)
    else:
        topo = topology_of(facts, request.name or (min(facts, key=natural) if len(facts) == 1 else "hosts")).build()
    return refine(topo, facts, request.sizes)


def _fabric(source: str, request: Request) -> Topology:
    values = request.sources[source]
    if source == "ibnetdiscover":
        from dataclasses import replace

        from twin.topology.discovery import discover_files

        topo = discover_files(_by_plane(values))
        return replace(topo, name=request.name) if request.name else topo
    sketch = _lldp(values) if source == "lldp" else _single(source, values)
    sketch.name = request.name or sketch.name
    return assemble(sketch, request.sizes)


def _by_plane(values: Sequence[str]) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for i, value in enumerate(values):
        plane, path = split(value)
        plane = plane or "ABCDEFGH"[i % 8]
        if plane in files:
            raise InputError(f"--ibnetdiscover: plane {plane} is given twice")
        files[plane] = path
    return files


def _single(source: str, values: Sequence[str]) -> Sketch:
    if len(values) > 1:
        raise InputError(f"--{source}: expected one file, found {len(values)}")
    path = Path(values[0])
    if source == "slurm":
        from twin.topology.importers import slurm

        text = read_text(path, "YAML")
        parser = slurm.parse_yaml_file if path.suffix.lower() in (".yaml", ".yml") else slurm.parse_conf
        sketch = parser(text, str(path))
    else:
        form, module, function = _PARSERS[source]
        parse: Callable[[str, str], Sketch] = getattr(import_module(f"twin.topology.importers.{module}"), function)
        sketch = parse(read_text(path, form), str(path))
    return sketch


def _lldp(values: Sequence[str]) -> Sketch:
    from twin.topology.importers import lldp

    texts: dict[str, str] = {}
    speakers: dict[str, str | None] = {}
    for value in values:
        host, path = split(value)
        files = sorted(p for p in path.iterdir() if p.is_file()) if path.is_dir() else [path]
        if not files:
            raise InputError(f"{path}: an empty directory; expected a file of each device")
        for file in files:
            if str(file) in texts:
                raise InputError(f"--lldp: {file} is given twice")
            texts[str(file)] = read_text(file, "JSON")
            speakers[str(file)] = host or (file.stem if len(values) > 1 or len(files) > 1 else None)
    return lldp.parse(texts, speakers, "lldp")


def _host_facts(request: Request, fabric: bool) -> dict[str, HostFacts]:
    """Host name or pattern -> facts. A file without one tells of all GPU hosts, or of the host it is named after."""
    found: dict[str, HostFacts] = dict(request.facts)
    for source, (form, module) in HOST_SOURCES.items():
        parse: Callable[[str, str], HostFacts] = import_module(f"twin.topology.importers.{module}").parse
        for value in request.sources.get(source, ()):
            host, path = split(value)
            host = host or ("*" if fabric else clean(path.stem))
            if host in found:
                raise InputError(f"--{source}: {host} is given twice; expected HOST=FILE")
            found[host] = parse(read_text(path, form), str(path))
    if not fabric and (patterns := [h for h in found if "*" in h or "?" in h]):
        raise InputError(f"{patterns[0]}: a pattern needs the wiring of a fabric beside it")
    return found


def split(value: str) -> tuple[str | None, Path]:
    """`NAME=FILE` or `FILE`; a file that is there by the whole name is meant as a whole."""
    name, equals, path = value.partition("=")
    if not equals or Path(value).exists():
        return None, Path(value)
    if not name.strip() or not path:
        raise InputError(f"{value!r}: expected NAME=FILE or FILE")
    return name.strip(), Path(path)
