"""`fabrictwin demo`: a simulated fabric with faults."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import click

from tui.commands.options import plain_option, preset_sizes, wants_screen
from tui.commands.screen import open_screen
from twin.errors import InputError
from twin.simulator.scenario import DEMO, Scenario

if TYPE_CHECKING:
    from tui.session import PacedSession
    from twin.frames import Frame

AHEAD = 2.5  # seconds of the scenario that are past when the screen opens: enough for a first verdict


@click.command(
    epilog="""\b
Examples:
  fabrictwin demo
  fabrictwin demo --preset gb300-nvl72-superpod --scenario flapping-link
  fabrictwin demo --plain --speed 0 > story.txt      as fast as it goes"""
)
@click.option("--preset", help="The fabric to simulate (see `topology presets`).")
@click.option("--scenario", help="A drill file, or a shipped drill by name (see `drill list`).")
@click.option("--speed", type=click.FloatRange(min=0), help="Times real time; 0 is as fast as it goes. [default: 1]")
@preset_sizes
@plain_option
@click.option("--ascii", "ascii_only", is_flag=True, help="ASCII characters only.")
def command(
    preset: str | None,
    scenario: str | None,
    speed: float | None,
    sizes: dict[str, int],
    plain: bool,
    ascii_only: bool,
) -> None:
    """A simulated fabric with faults: a plane fails and recovers, a leaf dies, a link runs slow.

    In a terminal it opens the screen; otherwise it prints the story as lines and ends with the scenario.
    """
    chosen = _scenario(preset, scenario, sizes)
    if wants_screen(plain):
        from tui.session import Late

        title = chosen.preset
        open_screen(Late(title, "demo", partial(_session, chosen, speed or 1.0)), ascii_only)
        return
    _tell(chosen, speed or 0.0)


def _session(scenario: Scenario, speed: float) -> PacedSession:
    """The scenario for the screen, its first seconds already past."""
    from tui.session import PacedSession
    from twin.simulator.simulation import Simulation
    from twin.twin import Twin

    now = time.time_ns() // 1000 * 1000
    simulation = Simulation(scenario, start=now - round(AHEAD * 1e9))
    twin = Twin(simulation.topology)
    return PacedSession(simulation.topology.name, twin, simulation.frames(), speed=speed, ahead=AHEAD)


def _tell(scenario: Scenario, speed: float) -> None:
    """The scenario as lines."""
    from tui.plain import follow
    from twin.simulator.simulation import Simulation
    from twin.twin import Twin

    simulation = Simulation(scenario, start=time.time_ns() // 10**9 * 10**9)
    twin = Twin(simulation.topology)
    follow(twin, _paced(simulation.frames(), speed), click.echo)
    click.echo(f"end of the scenario: {scenario.about}; {len(twin.incidents)} incidents")


def _paced(frames: Iterator[Frame], speed: float) -> Iterator[Frame]:
    """Frames against the wall clock at a speed; 0 does not wait."""
    first: int | None = None
    began = time.monotonic()
    for frame in frames:
        first = frame.time if first is None else first
        if speed:
            due = began + (frame.time - first) / 1e9 / speed
            time.sleep(max(0.0, due - time.monotonic()))
        yield frame


def _scenario(preset: str | None, scenario: str | None, sizes: dict[str, int]) -> Scenario:
    from dataclasses import replace

    chosen = DEMO
    if scenario is not None:
        from replay.drills.file import find_drill, load_drill

        chosen = load_drill(find_drill(scenario)).scenario
    if preset is None and not sizes:
        return chosen
    if preset is not None and preset != chosen.preset:
        from twin.simulator.story import story_for

        if scenario is not None:
            raise InputError(f"scenario {scenario} is about {chosen.preset}; leave --preset out, or --scenario")
        return story_for(preset, sizes)
    return replace(chosen, parameters={**chosen.parameters, **sizes})
