"""`fabrictwin topology`: the wiring of a preset or a site."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tui.commands.options import json_option, preset_sizes, print_json
from twin.errors import InputError
from twin.topology.model import Topology
from twin.topology.presets import PRESETS


@click.group()
def command() -> None:
    """The wiring: what a fabric is made of, from a preset, a site file or a discovery."""


@command.command()
@click.argument("site")
@preset_sizes
@json_option
def show(site: str, sizes: dict[str, int], as_json: bool) -> None:
    """What PRESET or SITE is made of."""
    from twin.topology.summary import summary, text

    topo = _load(site, sizes)
    if as_json:
        print_json(summary(topo))
    else:
        click.echo(text(topo))


@command.command()
@click.argument("site")
@preset_sizes
@json_option
def validate(site: str, sizes: dict[str, int], as_json: bool) -> None:
    """Whether SITE can be used: every mistake with its line, exit code 3 when there is one."""
    from twin.topology.summary import summary

    found = summary(_load(site, sizes))
    if as_json:
        print_json({"valid": True, **found})
    else:
        click.echo(f"{site}: valid; {found['gpus']} GPUs, {found['leaves']} leaves, {found['spines']} spines")


@command.command()
@click.argument("site")
@preset_sizes
@click.option(
    "--format", "form", type=click.Choice(["yaml", "json", "ibnetdiscover"]), default="yaml", show_default=True
)
@click.option("--plane", help="Which plane, where a format holds one (ibnetdiscover).")
@click.option("--link-speed", help="Give every link this speed instead, e.g. 200G: ibsim knows speeds up to HDR.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="File to write.")
def export(
    site: str, sizes: dict[str, int], form: str, plane: str | None, link_speed: str | None, output: Path | None
) -> None:
    """The wiring in its explicit form, or as a dump that `ibsim` can load.

    \b
    Examples:
      fabrictwin topology export b300-superpod-xdr -o wiring.yaml
      fabrictwin topology export b300-superpod-xdr --format ibnetdiscover --link-speed 200G > net
    """
    topo = _load(site, sizes)
    if link_speed is not None:
        topo = _at_speed(topo, link_speed)
    _write(_exported(topo, form, plane), output)


def _exported(topo: Topology, form: str, plane: str | None) -> str:
    if form == "ibnetdiscover":
        from twin.topology.ibexport import to_ibnetdiscover

        return to_ibnetdiscover(topo, plane)
    from twin.topology.explicit import to_wiring

    wiring = to_wiring(topo)
    if form == "json":
        import msgspec

        return msgspec.json.format(msgspec.json.encode(wiring), indent=1).decode() + "\n"
    return _yaml(wiring)


def _yaml(value: dict[str, Any]) -> str:
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(value, Dumper=dumper, sort_keys=False, default_flow_style=None, width=200)
    return text


def _at_speed(topo: Topology, text: str) -> Topology:
    from dataclasses import replace

    import numpy as np

    from twin.units import bits_per_second

    try:
        speed = bits_per_second(text)
    except ValueError as problem:
        raise InputError(f"--link-speed: {problem}") from problem
    return replace(topo, links=replace(topo.links, speed=np.full(len(topo.links.a), speed)))


def _write(text: str, output: Path | None) -> None:
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise InputError(f"{output}: cannot be written: {problem.strerror}") from problem
    click.echo(f"wrote {output}", err=True)


@command.command()
@json_option
def presets(as_json: bool) -> None:
    """The presets, their sizes and where their figures come from."""
    if as_json:
        print_json([_preset_json(name) for name in PRESETS])
        return
    for p in PRESETS.values():
        click.echo(f"{p.name}\n  {p.about}\n  source: {p.source}")
        for q in p.parameters:
            allowed = f"{q.allowed.start} to {q.allowed.stop - 1}" if isinstance(q.allowed, range) else q.allowed
            click.echo(f"  --{q.name.replace('_', '-'):<16} {q.help} ({allowed}, default {q.default})")


def _preset_json(name: str) -> dict[str, Any]:
    p = PRESETS[name]
    sizes = [{"name": q.name, "default": q.default, "help": q.help} for q in p.parameters]
    return {"name": p.name, "about": p.about, "source": p.source, "parameters": sizes}


@command.command()
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
@click.option("--link-speed", help="Speed of links whose speed the input does not say, e.g. 400G.")
@click.option("--gpus-per-node", type=click.IntRange(0, 1024), help="GPUs of a GPU host, where no --nvidia-smi says.")
@click.option("--gpu-model", help="Model of the GPUs, e.g. b300.")
@click.option("--name", help="Name of the fabric.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Wiring file to write.")
@json_option
def discover(
    output: Path | None, as_json: bool, link_speed: str | None, gpus_per_node: int | None, gpu_model: str | None,
    name: str | None, **sources: tuple[str, ...] | str | None,
) -> None:  # fmt: skip
    """The wiring from what other tools say, as a file that --site and topology commands read.

    One source of the fabric, and any number of single hosts beside it. What had to be inferred is said, with the
    reason, in comments at the head of the file.

    \b
    Examples:
      fabrictwin topology discover --ibnetdiscover A=planeA.out --ibnetdiscover B=planeB.out -o wiring.yaml
      fabrictwin topology discover --lldp collected/ --nvidia-smi 'gpu-*=topo.txt' -o wiring.yaml
      fabrictwin topology discover --slurm /etc/slurm/topology.conf --gpus-per-node 8 -o wiring.yaml
    """
    from twin.topology.importers import combine, file
    from twin.topology.importers.sketch import Sizes
    from twin.topology.summary import summary, text

    given = {
        option.replace("_", "-"): (value,) if isinstance(value, str) else tuple(value or ())
        for option, value in sources.items()
    }
    sizes = Sizes(None if link_speed is None else _speed("--link-speed", link_speed), gpus_per_node, gpu_model)
    topo = combine.discover(combine.Request(given, sizes, name))
    if output is not None:
        _write(file.text(topo), output)
    if as_json:
        print_json({**summary(topo), "notes": list(topo.notes)})
    elif output is None:
        click.echo(file.text(topo), nl=False)
    else:
        click.echo(text(topo))


def _speed(option: str, value: str) -> float:
    from twin.units import bits_per_second

    try:
        return bits_per_second(value)
    except ValueError as problem:
        raise InputError(f"{option}: {problem}") from problem


def _load(site: str, sizes: dict[str, int]) -> Topology:
    if site in PRESETS:
        from twin.topology.presets import preset

        return preset(site, **sizes)
    from twin.site import load_site

    return load_site(site, sizes).topology
