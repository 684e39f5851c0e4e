"""`fabrictwin import`: history of other systems as a trace."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tui.commands.options import Seconds
from twin.errors import InputError

if TYPE_CHECKING:
    from collectors.prometheus.history import History
    from replay.importing import Import
    from twin.site import Site
    from twin.sitespecs import PrometheusSpec

_DEADLINE_S = 120.0  # for one stretch of history


@click.group(
    epilog="""\b
Examples:
  fabrictwin import prometheus http://prom:9090 --site site.yaml --start -2h --end now -o night.mcap"""
)
def command() -> None:
    """History of other systems as a trace, to be replayed and judged like a recording."""


@command.command(
    epilog="""\b
Examples:
  fabrictwin import prometheus http://prom:9090 --site site.yaml --start -2h --end now -o night.mcap
  fabrictwin import prometheus http://prom:9090 --site site.yaml -o night.mcap \\
      --start 2025-12-01T03:00Z --end 2025-12-01T05:00Z --profile dcgm-exporter --step 15s
  fabrictwin analyze night.mcap"""
)
@click.argument("url")
@click.option("--site", required=True, help="Wiring and how series lie on it: preset, site or wiring file.")
@click.option("--start", required=True, metavar="TIME", help="Where it begins.")
@click.option("--end", default="now", show_default=True, metavar="TIME", help="Where it ends.")
@click.option(
    "-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path), help="Trace to write."
)
@click.option("--step", type=Seconds(), help="At most one reading in this time (15s); all when absent.")
@click.option("--profile", multiple=True, help="What its series mean, instead of what SITE says; repeatable.")
@click.option("--selector", help='Label matchers for every query, such as cluster="a".')
def prometheus(
    url: str, site: str, start: str, end: str, output: Path, step: float | None, profile: tuple[str, ...],
    selector: str | None,
) -> None:  # fmt: skip
    """Imports what the Prometheus-compatible store at URL remembers of a fabric.

    Profiles, names and credentials are those that SITE gives for this store. Interrupted, the same command goes on
    where it was. Where the store has nothing the trace has nothing: a gap stays a gap.

    TIME: 2025-12-01T03:00Z, seconds since the epoch, a time of today (UTC), or back from now (-2h; s, m, h, d).
    """
    from collectors.prometheus.history import History
    from replay.importing import Import
    from twin.frames import NS
    from twin.site import load_site
    from twin.topology.explicit import to_wiring

    loaded = load_site(site)
    now = time.time_ns()
    first, last = _time("--start", start, now), _time("--end", end, now)
    spec = _spec(loaded, url, profile, selector)
    history = History(spec, loaded, round((step or 0) * NS))
    asked = {
        "url": url, "selector": spec.selector, "profile": list(spec.profile), "step": step, "names": spec.names,
        "ports": spec.ports, "start": start, "end": end, "wiring": to_wiring(loaded.topology),
    }  # fmt: skip
    job = Import(history, output, loaded.topology, loaded.source, first, last, _digested(asked))
    try:
        asyncio.run(_run(job, history))
    except KeyboardInterrupt:
        click.echo("\nfabrictwin: interrupted; the same command goes on where this one was", err=True)
        raise
    for warning in job.warnings:
        click.echo(f"fabrictwin: {warning}", err=True)
    click.echo(f"{output}: {job.frames} frames", err=True)


async def _run(job: Import, history: History) -> None:
    try:
        if not sys.stderr.isatty():
            await job.run()
            return
        with click.progressbar(length=1000, label="importing", file=sys.stderr) as bar:
            await job.run(lambda share: bar.update(round(1000 * share) - bar.pos))
    finally:
        await history.close()


def _time(option: str, text: str, now: int) -> int:
    """A time in ns, whole milliseconds, as the store has them."""
    from replay.when import bound

    found = now if text == "now" else bound(option, text, now, now)
    return found // 1_000_000 * 1_000_000


def _spec(site: Site, url: str, profile: tuple[str, ...], selector: str | None) -> PrometheusSpec:
    """How this store is read: as the site says of it. Of another store only what has no secret in it."""
    from twin.sitespecs import PrometheusSpec

    stores = [spec for spec in site.collectors if isinstance(spec, PrometheusSpec)]
    this = next((spec for spec in stores if spec.url.rstrip("/") == url.rstrip("/")), None)
    given: dict[str, Any] = {"url": url, "deadline": _DEADLINE_S}
    if profile:
        given["profile"] = list(profile)
    if selector is not None:
        given["selector"] = selector
    if this is not None:
        return this.model_copy(update=given)
    if len(stores) == 1:
        given = {part: getattr(stores[0], part) for part in ("profile", "names", "ports", "selector")} | given
    if "profile" not in given:
        raise InputError(
            f"{url}: the site has no prometheus collector that says what its series mean; give --profile, such as "
            "dcgm-exporter or node-exporter-infiniband"
        )
    return PrometheusSpec(**given)


def _digested(asked: dict[str, Any]) -> dict[str, Any]:
    """The same with the wiring as a short text."""
    from hashlib import blake2b

    import msgspec

    wiring = blake2b(msgspec.json.encode(asked["wiring"]), digest_size=12).hexdigest()
    return {**asked, "wiring": wiring}
