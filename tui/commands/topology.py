"""`fabrictwin topology`: the wiring of a preset or a site."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tui.commands.options import json_option, output_option, preset_sizes, print_json, speed, write
from tui.commands.topology_discover import discover, nvml
from twin.errors import InputError
from twin.topology.presets import PRESETS

if TYPE_CHECKING:
    from twin.site import Site
    from twin.topology.model import Topology

FORMATS = ("yaml", "json", "ibnetdiscover", "dot", "mermaid", "slurm")


@click.group()
def command() -> None:
    """The wiring: what a fabric is made of, from a preset, a site file or a discovery."""


command.add_command(discover)
command.add_command(nvml)


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
def validate(site: str, sizes: dict[str, int], as_json: bool) -> int:
    """What an engineer would question in SITE: planes that touch, crossing rails, unequal uplinks, missing cables.

    Exit code 0 without a finding, 1 with some, 3 when SITE cannot be used (every mistake with its line). What is
    meant so is said in the file, at its top level: `accept: [RULE, "RULE:ADDRESS"]`.
    """
    from twin.topology.checks import check
    from twin.topology.summary import summary

    loaded = _site(site, sizes)
    report, found = check(loaded.topology, loaded.accept), summary(loaded.topology)
    if as_json:
        print_json({"valid": True, **report.to_json(), **found})
    else:
        if text := report.text():
            click.echo(text)
        say = (
            f"{len(report.findings)} finding{'s' if len(report.findings) > 1 else ''}" if report.findings else "valid"
        )
        click.echo(f"{site}: {say}; {found['gpus']} GPUs, {found['leaves']} leaves, {found['spines']} spines")
    return 1 if report.findings else 0


@command.command()
@click.argument("design")
@click.argument("found")
@preset_sizes
@json_option
def drift(design: str, found: str, sizes: dict[str, int], as_json: bool) -> int:
    """What differs between DESIGN and FOUND, one line a mistake; exit code 0 when nothing does, 1 when something.

    Both are presets, site files or wiring files; FOUND may be a dump of ibnetdiscover as well.

    \b
    Example:
      ibnetdiscover > now.out && fabrictwin topology drift site.yaml now.out
    """
    from twin.topology import found as field

    result = field.drift(_load(design, sizes), field.read(found))
    if as_json:
        print_json(result.to_json())
    else:
        for mistake in result.mistakes:
            click.echo(f"{mistake.kind:<9}  {mistake.text}")
        for note in result.notes:
            click.echo(f"note       {note}")
        click.echo(result.verdict)
    return 1 if result.mistakes else 0


@command.command()
@click.argument("site")
@preset_sizes
@click.option("--format", "form", type=click.Choice(FORMATS), default="yaml", show_default=True)
@click.option("--plane", help="Which plane: ibnetdiscover holds one, slurm may.")
@click.option("--link-speed", help="Give every link this speed instead, e.g. 200G: ibsim knows speeds up to HDR.")
@click.option("--short", is_flag=True, help="YAML with ranges for regular shapes: for people, who edit it.")
@output_option
def export(
    site: str,
    sizes: dict[str, int],
    form: str,
    plane: str | None,
    link_speed: str | None,
    short: bool,
    output: Path | None,
    force: bool,
) -> None:
    """The wiring in its explicit form, as a dump that `ibsim` can load, as a drawing or as Slurm's topology.conf.

    Drawings (dot, mermaid) show many hosts and parallel links as one, so that they stay readable.

    \b
    Examples:
      fabrictwin topology export b300-superpod-xdr --short -o wiring.yaml
      fabrictwin topology export b300-superpod-xdr --format ibnetdiscover --link-speed 200G > net
      fabrictwin topology export site.yaml --format dot | dot -Tsvg > fabric.svg
    """
    loaded = _site(site, sizes)
    topo = loaded.topology
    if link_speed is not None:
        topo = _at_speed(topo, link_speed)
    if short and form != "yaml":
        raise InputError(f"--short: only YAML has short forms, not {form}")
    write(_exported(topo, "short" if short else form, plane, loaded.accept), output, force)


def _exported(topo: Topology, form: str, plane: str | None, accept: tuple[str, ...]) -> str:
    if form in ("dot", "mermaid"):
        from twin.topology import graphs

        return graphs.to_dot(topo) if form == "dot" else graphs.to_mermaid(topo)
    if form == "slurm":
        from twin.topology.slurmtree import to_slurm

        return to_slurm(topo, plane)
    if form == "ibnetdiscover":
        from twin.topology.ibexport import to_ibnetdiscover

        return to_ibnetdiscover(topo, plane)
    if form == "short":
        from twin.topology.short.text import short_yaml

        return short_yaml(topo) + (f"\n{_yaml({'accept': list(accept)})}" if accept else "")
    from twin.topology.explicit import to_wiring

    wiring = {**to_wiring(topo), **({"accept": list(accept)} if accept else {})}
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

    bits = speed("--link-speed", text)
    return replace(topo, links=replace(topo.links, speed=np.full(len(topo.links.a), bits)))


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


def _load(site: str, sizes: dict[str, int]) -> Topology:
    return _site(site, sizes).topology


def _site(site: str, sizes: dict[str, int]) -> Site:
    from twin.site import load_site

    return load_site(site, sizes)
