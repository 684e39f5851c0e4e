"""`fabrictwin topology discover` and `topology nvml`: the wiring from what other tools say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tui.commands.options import json_option, output_option, print_json, speed, write

if TYPE_CHECKING:
    from twin.topology.checks.finding import Finding
    from twin.topology.importers.hostfacts import HostFacts
    from twin.topology.model import Topology

MOST_SINGLE = 50  # places of a finding that are accepted one by one


@click.command()
@click.option(
    "--ibnetdiscover", multiple=True, metavar="[PLANE=]FILE",
    help="A dump of ibnetdiscover, either form; once a plane.",
)  # fmt: skip
@click.option(
    "--lldp", multiple=True, metavar="[HOST=]FILE|DIR",
    help="Output of `lldpcli -f json0 show neighbors`, once a host and switch; or a DIR of files named after them.",
)  # fmt: skip
@click.option("--air", metavar="FILE", help="A vendor AIR export (JSON).")
@click.option("--spectrum-x", metavar="FILE", help="A Spectrum-X generator's topology (JSON).")
@click.option("--netq", metavar="FILE", help="A NetQ topology graph (JSON).")
@click.option("--slurm", metavar="FILE", help="Slurm's topology.conf or topology.yaml.")
@click.option("--topograph", metavar="FILE", help="A topograph model (YAML).")
@click.option("--containerlab", metavar="FILE", help="A containerlab topology (YAML).")
@click.option(
    "--nvidia-smi", multiple=True, metavar="[HOST=]FILE",
    help="Output of `nvidia-smi topo -m`: GPUs, NICs and NVLinks of HOST (a name or pattern; else of all GPU hosts).",
)  # fmt: skip
@click.option("--nccl", multiple=True, metavar="[HOST=]FILE", help="A NCCL topology (XML), of HOST as above.")
@click.option(
    "--nvml", multiple=True, metavar="[HOST=]FILE|this",
    help="GPUs, NVLinks, NVLink domain and rack by NVML: of this host, or what `topology nvml` printed on another.",
)  # fmt: skip
@click.option("--link-speed", help="Speed of links whose speed the input does not say, e.g. 400G.")
@click.option("--gpus-per-node", type=click.IntRange(0, 1024), help="GPUs of a GPU host, where no --nvidia-smi says.")
@click.option("--gpu-model", help="Model of the GPUs, e.g. b300.")
@click.option("--name", help="Name of the fabric.")
@click.option("--long", is_flag=True, help="Every link on a line of its own, without ranges.")
@click.option(
    "--accept-findings", is_flag=True,
    help="Write what `topology validate` finds into the file as meant so; look at each, and delete what is not.",
)  # fmt: skip
@output_option
@json_option
def discover(
    output: Path | None, force: bool, as_json: bool, long: bool, accept_findings: bool, link_speed: str | None,
    gpus_per_node: int | None, gpu_model: str | None, name: str | None, **sources: tuple[str, ...] | str | None,
) -> None:  # fmt: skip
    """The wiring from what other tools say, as a file that --site and topology commands read.

    One source of the fabric, and any number of single hosts beside it. What had to be inferred is said, with the
    reason, in comments at the head of the file.

    \b
    Examples:
      fabrictwin topology discover --ibnetdiscover A=planeA.out --ibnetdiscover B=planeB.out -o wiring.yaml
      fabrictwin topology discover --lldp collected/ --nvidia-smi 'gpu-*=topo.txt' -o wiring.yaml
      fabrictwin topology discover --slurm /etc/slurm/topology.conf --gpus-per-node 8 -o wiring.yaml
      fabrictwin topology discover --lldp collected/ --nvml n0=n0.json --nvml n1=n1.json -o wiring.yaml
    """
    from twin.topology.checks import check
    from twin.topology.importers import combine
    from twin.topology.importers.sketch import Sizes
    from twin.topology.summary import summary, text

    given = {
        option.replace("_", "-"): (value,) if isinstance(value, str) else tuple(value or ())
        for option, value in sources.items()
    }
    sizes = Sizes(None if link_speed is None else speed("--link-speed", link_speed), gpus_per_node, gpu_model)
    given["nvml"], facts = _nvml_here(given["nvml"])
    topo = combine.discover(combine.Request(given, sizes, name, facts))
    found = check(topo).findings
    written = _discovered(topo, long) + (_accepted(found) if accept_findings else "")
    if output is not None:
        write(written, output, force)
    if as_json:
        print_json({**summary(topo), "notes": list(topo.notes), "findings": [f.to_json() for f in found]})
    elif output is None:
        click.echo(written, nl=False)
    else:
        click.echo(text(topo))
    if found and not accept_findings and not as_json:
        number = f"{len(found)} thing{'s' if len(found) > 1 else ''}"
        click.echo(f"fabrictwin: an engineer would question {number} here; `topology validate` says which", err=True)


def _discovered(topo: Topology, long: bool) -> str:
    if long:
        from twin.topology.importers import file

        return file.text(topo)
    from twin.topology.short.text import short_yaml

    return short_yaml(topo, topo.notes, title="Discovered wiring.")


def _accepted(findings: Sequence[Finding]) -> str:
    """The `accept` of a wiring file, each entry under what was found."""
    if not findings:
        return ""
    head = "Found so in the field. Meant so? Without its entry `topology validate` tells of a thing again."
    lines = ["", f"# {head}", "accept:"]
    for f in findings:
        lines.append(f"# {f.place + ': ' if f.place else ''}{f.found}")
        single = 0 < len(f.places) <= MOST_SINGLE
        lines += [f'- "{f.rule}:{place}"' for place in f.places] if single else [f'- "{f.accept}"']
    return "\n".join(lines) + "\n"


def _nvml_here(values: Sequence[str]) -> tuple[tuple[str, ...], dict[str, HostFacts]]:
    """The files among the values of --nvml, and what NVML says here where one is `this` or `HOST=this`."""
    from twin.topology.importers.nvml import facts_of

    files, facts = [], {}
    for value in values:
        host, _, what = value.rpartition("=")
        if what == "this" and not Path(value).exists():
            described = _described(host or None)
            facts[described["host"]] = facts_of(described, "NVML")
        else:
            files.append(value)
    return tuple(files), facts


def _described(host: str | None) -> dict[str, Any]:
    from collectors.build import this_host
    from collectors.nvml import nvml_topology
    from collectors.nvml.describe import describe

    return describe(nvml_topology(host or this_host()))


@click.command()
@click.option("--host", metavar="NAME", help="What the wiring calls this host; else its own name.")
def nvml(host: str | None) -> None:
    """What NVML says of this host's GPUs, NVLinks, NVLink domain and rack: JSON for `topology discover --nvml`."""
    print_json(_described(host))
