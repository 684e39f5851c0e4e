"""FabricApp: the screen of fabrictwin over any session. It draws snapshots and decides nothing about fabrics."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen

from tui.colours import COLOURS
from tui.keymap import bindings_of, changeable
from tui.screens.base import StartingScreen, ViewScreen
from tui.session import Late, ReplaySession, Session, next_speed
from tui.shown import Shown, marks_of
from tui.text import clock
from tui.theme import Palette, textual_theme

if TYPE_CHECKING:
    from twin.incident import Incident
    from twin.snapshot import Snapshot

NOTE_SECONDS = 4.0
ACKNOWLEDGED, SILENCED = 8 * 60, 30  # minutes: a shift, and the time to mend something
_REPLAY_ONLY = {"step", "incident", "goto"}


def ascii_locale(environ: dict[str, str] | None = None) -> bool:
    """Whether the locale says that the terminal is not UTF-8."""
    env = os.environ if environ is None else environ
    said = env.get("LC_ALL") or env.get("LC_CTYPE") or env.get("LANG") or ""
    return bool(said) and "utf" not in said.lower()


def operator() -> str:
    """Who sits at this screen, as the system knows it."""
    env = os.environ
    return env.get("SUDO_USER") or env.get("USER") or env.get("LOGNAME") or "operator"


def _overview() -> Screen[None]:
    from tui.screens.overview import OverviewScreen

    return OverviewScreen()


def _planes() -> Screen[None]:
    from tui.screens.planes import PlanesScreen

    return PlanesScreen()


def _nvlink() -> Screen[None]:
    from tui.screens.nvlink import NvlinkScreen

    return NvlinkScreen()


def _gpus() -> Screen[None]:
    from tui.screens.gpus import GpusScreen

    return GpusScreen()


def _power() -> Screen[None]:
    from tui.screens.power import PowerScreen

    return PowerScreen()


def _incidents() -> Screen[None]:
    from tui.screens.incidents import IncidentsScreen

    return IncidentsScreen()


def _whatif() -> Screen[None]:
    from tui.screens.whatif import WhatIfScreen

    return WhatIfScreen()


class FabricApp(App[None]):
    """beat: seconds between redraws. ascii: None asks the locale. clock: wall clock, ns since the epoch.

    colours: of which theme. view: the one to begin with. keys: those that a person changed (`tui/keymap.py`).
    warning: what to say first.
    """

    TITLE = "fabrictwin"
    ENABLE_COMMAND_PALETTE = True
    MODES: ClassVar[dict[str, Any]] = {
        "starting": StartingScreen,
        "overview": _overview,
        "planes": _planes,
        "nvlink": _nvlink,
        "gpus": _gpus,
        "power": _power,
        "incidents": _incidents,
        "whatif": _whatif,
    }
    DEFAULT_MODE = "starting"  # an empty view: the first frame needs no more
    CSS = """
    SearchIcon { display: none; }
    .-ascii CommandPalette > Vertical { border: none; }
    .-ascii CommandPalette #--input { border: none; }
    .-ascii CommandPalette OptionList { border: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("1", "view('overview')", "overview", tooltip="verdict, planes, GPUs, incidents, sources"),
        Binding("2", "view('planes')", "planes", tooltip="each plane, leaf by spine"),
        Binding("3", "view('nvlink')", "NVLink", tooltip="NVLink domains, GPU by switch chip"),
        Binding("4", "view('gpus')", "GPUs", tooltip="every GPU: sort by any column, filter by anything"),
        Binding("5", "view('power')", "power", tooltip="racks, feeds, nodes, supplies: what each has to spare"),
        Binding("6", "view('incidents')", "incidents", tooltip="all incidents, open and resolved"),
        Binding("7", "view('whatif')", "what-if", tooltip="what would break next, and at what cost"),
        Binding("w", "whatif", "what if", show=False, tooltip="what if that under the cursor failed"),
        Binding("space", "pause", "pause", tooltip="pause the view; collecting goes on"),
        Binding("comma", "step(-1)", "step", key_display=", .", tooltip="one second back"),
        Binding("full_stop", "step(1)", "step on", show=False, tooltip="one second on"),
        Binding("left_square_bracket", "incident(-1)", "incident", key_display="[ ]", tooltip="the incident before"),
        Binding("right_square_bracket", "incident(1)", "incident", show=False, tooltip="the incident after"),
        Binding("less_than_sign", "speed(-1)", "speed", key_display="< >", tooltip="slower"),
        Binding("greater_than_sign", "speed(1)", "faster", show=False, tooltip="faster"),
        Binding("g", "goto", "go to", tooltip="go to a time of the recording"),
        Binding("colon", "command_palette", "commands", key_display=":", show=False, tooltip="the command palette"),
        Binding("question_mark", "help", "help", key_display="?", tooltip="the keys of this view"),
        Binding("q", "quit", "quit", tooltip="leave"),
        Binding("ctrl+c", "quit", show=False, priority=True, tooltip="leave"),
        Binding("ctrl+z", "suspend_process", show=False, tooltip="back to the shell; fg returns"),
    ]
    BINDINGS = changeable(BINDINGS)

    def __init__(
        self, session: Session, *, ascii: bool | None = None, beat: float = 1.0,
        clock: Callable[[], int] = time.time_ns, colours: str = "dark", view: str = "overview",
        keys: Mapping[str, str] | None = None, warning: str = "",
    ) -> None:  # fmt: skip
        super().__init__()
        self.session = session
        self.ascii = ascii_locale() if ascii is None else ascii
        self.beat = beat
        self.note = ""  # stands in the line of keys for a moment
        self.plane = 0  # the chosen plane, a row of the snapshot's planes
        self._clock = clock
        self._latest: Snapshot | None = None
        self._arrived = 0
        self._waiting = 0
        self._paused = False
        self._failed = ""
        self._first_view = view if view in self.MODES else "overview"
        self._keys = bindings_of(keys or {})
        self._warning = warning
        self.colours = ""
        self.paint(colours)
        self.shown = Shown(session.title, session.mode, speed=session.speed)

    # --- the session and the beat ---

    def on_mount(self) -> None:
        self._leave_cleanly_on_signals()
        if self._keys:
            self.set_keymap(self._keys)
        self.set_class(self.ascii, "-ascii")
        self.call_after_refresh(self._start)

    def _leave_cleanly_on_signals(self) -> None:
        """A program that is ended must give the terminal back as it was."""
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            with contextlib.suppress(ValueError, NotImplementedError, RuntimeError):
                asyncio.get_running_loop().add_signal_handler(number, self.exit)

    def _start(self) -> None:
        if self.current_mode == "starting":
            self.switch_mode(self._first_view)
        if self._warning:
            self.say(self._warning)
        self.run_worker(self._run_session(), group="session", exit_on_error=False)
        self.set_interval(self.beat, self.apply)

    async def _run_session(self) -> None:
        try:
            if isinstance(self.session, Late):
                self.session = await asyncio.to_thread(self.session.make)
                self.apply()
                if screen := self._view_screen():
                    screen.lay_out()
            await self.session.run(self.publish)
        except Exception as problem:
            self._failed = str(problem) or type(problem).__name__
        self.apply()

    def publish(self, snapshot: Snapshot) -> None:
        """Takes a snapshot; it waits for the next beat, and a newer one may replace it."""
        first = self._latest is None
        self._latest = snapshot
        self._arrived = self._clock()
        self._waiting += 1
        if first or (isinstance(self.session, ReplaySession) and not self.session.playing):
            self.apply()

    def apply(self) -> None:
        """Draws the newest snapshot, or the one the view is paused on."""
        replay = self.session if isinstance(self.session, ReplaySession) else None
        paused = not replay.playing if replay else self._paused
        snapshot, arrived = self.shown.snapshot, self.shown.arrived
        if not self._paused or snapshot is None:
            snapshot, arrived, self._waiting = self._latest, self._arrived, 0
        incidents = replay.incidents if replay else snapshot.incidents if snapshot is not None else ()
        self._show(
            Shown(
                self.session.title, self.session.mode, snapshot, self._clock(), arrived, paused, self._waiting,
                self.session.speed, replay.span if replay else None, marks_of(incidents), self.session.state,
                self._failed, self.shown.selected, self.session.about, tuple(self.session.reasons().items()),
            )
        )  # fmt: skip

    def _show(self, shown: Shown) -> None:
        self.shown = shown
        if shown.snapshot is not None:
            self.plane = max(0, min(self.plane, len(shown.snapshot.planes) - 1))
        screen = self._view_screen()
        if screen is not None:
            screen.show(shown)

    def _view_screen(self) -> ViewScreen | None:
        """The view on top, be it behind a dialog; None while the app goes down."""
        stack = self.screen_stack if self.is_running else ()
        return next((screen for screen in reversed(stack) if isinstance(screen, ViewScreen)), None)

    # --- what is chosen ---

    @property
    def plane_row(self) -> int:
        """The chosen plane as a row of the topology's planes, -1 where there are none."""
        snapshot = self.shown.snapshot
        return self.plane if snapshot is not None and snapshot.planes else -1

    def incident(self, id: str) -> Incident | None:
        """The incident of an id, the first of all where none has it."""
        incidents = () if self.shown.snapshot is None else self.shown.snapshot.incidents
        return next((i for i in incidents if i.id == id), incidents[0] if incidents and not id else None)

    def redraw(self) -> None:
        """Draws what is shown once more: something was chosen that more than one panel shows."""
        self._show(self.shown)

    def select(self, id: str) -> None:
        self._show(replace(self.shown, selected=id))

    def select_neighbour(self, way: int) -> None:
        incidents = () if self.shown.snapshot is None else self.shown.snapshot.incidents
        ids = [i.id for i in incidents]
        if ids:
            at = ids.index(self.shown.selected) if self.shown.selected in ids else 0
            self.select(ids[max(0, min(len(ids) - 1, at + way))])

    def choose_plane(self, by: int) -> None:
        count = 0 if self.shown.snapshot is None else len(self.shown.snapshot.planes)
        if count:
            self.plane = (self.plane + by) % count
            self._show(self.shown)

    # --- views ---

    def action_view(self, name: str) -> None:
        if self.current_mode == name:
            while len(self.screen_stack) > 1:
                self.pop_screen()
        else:
            self.switch_mode(name)

    def open_entity(self, address: str) -> None:
        """The page of a GPU, a node, a rack or a domain; one that is open already comes back."""
        from tui.rows.entity import page_of
        from tui.screens.domain import DomainScreen
        from tui.screens.entity import EntityScreen

        found = page_of(self.shown.snapshot.topology, address) if self.shown.snapshot is not None else None
        if found is None:
            self.say(f"{address} has no page of its own")
            return
        kind, name = found
        below = next((s for s in self.screen_stack if getattr(s, "address", "") == name), None)
        if below is None:
            self.push_screen(DomainScreen(name) if kind == "domain" else EntityScreen(name))
        while below is not None and self.screen is not below:
            self.pop_screen()

    def open_incident(self) -> None:
        from tui.screens.incident import IncidentScreen

        self.push_screen(IncidentScreen())

    def action_whatif(self) -> None:
        """The what-if view, asked about what is under the cursor."""
        screen = self._view_screen()
        entity = screen.entity() if screen is not None else ""
        if not entity:
            self.say("nothing here to ask about: 7 shows what would break next")
            return
        self.action_view("whatif")
        self.call_after_refresh(self._ask_whatif, f"?{entity}")

    def _ask_whatif(self, question: str) -> None:
        from tui.screens.whatif import WhatIfScreen

        if isinstance(self.screen, WhatIfScreen):
            self.screen.ask(question)

    def filter_incidents(self) -> None:
        """The incidents view with its filter open."""
        self.action_view("incidents")
        self.call_after_refresh(self._filter_here)

    def _filter_here(self) -> None:
        from tui.screens.incidents import IncidentsScreen

        if isinstance(self.screen, IncidentsScreen):
            self.screen.action_filter()

    def back(self) -> None:
        if len(self.screen_stack) > 1:
            self.pop_screen()
        elif self.current_mode != "overview":
            self.switch_mode("overview")

    async def action_help(self) -> None:
        from tui.screens.help import HelpScreen, rows_of

        self.push_screen(HelpScreen(rows_of(self.screen), f"fabrictwin · {self.session.title} · {self.session.mode}"))

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        yield SystemCommand(
            "Overview", "Verdict, planes, GPUs, incidents, sources", lambda: self.action_view("overview")
        )
        yield SystemCommand("Planes", "Each plane, leaf by spine", lambda: self.action_view("planes"))
        yield SystemCommand("NVLink", "NVLink domains, GPU by switch chip", lambda: self.action_view("nvlink"))
        yield SystemCommand("GPUs", "Every GPU, sorted and filtered", lambda: self.action_view("gpus"))
        yield SystemCommand("Power", "Racks, feeds, nodes and supplies", lambda: self.action_view("power"))
        yield SystemCommand("Incidents", "All incidents, open and resolved", lambda: self.action_view("incidents"))
        yield SystemCommand("What-if", "What would break next, and at what cost", lambda: self.action_view("whatif"))
        yield SystemCommand("Filter incidents", "Those that hold some words", self.filter_incidents)
        for name in COLOURS:
            yield SystemCommand(f"Colours: {name}", "Kept for the next time", partial(self.action_colours, name))
        yield SystemCommand("Keys", "The keys of this view", lambda: self.call_later(self.action_help))
        yield SystemCommand("Quit", "Leave fabrictwin", self.exit)

    def paint(self, colours: str) -> None:
        """Takes the colours of a theme."""
        self.colours = colours
        self.register_theme(textual_theme(colours))
        self.theme = f"fabrictwin-{colours}"
        self.palette = Palette(COLOURS[colours], ascii_only=self.ascii)

    def action_colours(self, name: str = "") -> None:
        """Changes to a theme, to the next one where none is named."""
        names = list(COLOURS)
        self.paint(name or names[(names.index(self.colours) + 1) % len(names)])
        self._show(self.shown)

    def action_command_palette(self) -> None:
        from textual.command import CommandPalette

        if not any(isinstance(screen, CommandPalette) for screen in self.screen_stack):
            self.push_screen(CommandPalette(placeholder="Search for commands"))

    # --- time ---

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in _REPLAY_ONLY:
            return self.session.mode == "replay"
        if action == "speed":
            return self.session.speed is not None
        return True

    def action_pause(self) -> None:
        if isinstance(self.session, ReplaySession):
            self.session.toggle()
        else:
            self._paused = not self._paused
        self.apply()

    def action_speed(self, step: int) -> None:
        if self.session.speed is not None:
            speed = next_speed(self.session.speed, step)
            cast(Any, self.session).set_speed(speed)
            self.apply()

    def action_step(self, seconds: int) -> None:
        if isinstance(self.session, ReplaySession):
            self.session.step(seconds)

    def seek(self, when: int) -> None:
        if isinstance(self.session, ReplaySession):
            self.session.seek(when)

    def action_incident(self, way: int) -> None:
        if isinstance(self.session, ReplaySession):
            found = self.session.jump_incident(way)
            if found is None:
                self.say("no incident after this" if way > 0 else "no incident before this")
            else:
                self.select(found.id)

    def action_goto(self) -> None:
        from tui.screens.goto import GotoScreen

        if isinstance(self.session, ReplaySession):
            start, end = self.session.span
            self.push_screen(GotoScreen(self.session.at, start, end), self._go)

    def _go(self, when: int | None) -> None:
        if when is not None and isinstance(self.session, ReplaySession):
            self.session.playing = False
            self.session.seek(when)

    # --- taking care of incidents ---

    def acknowledge(self, incident: Incident | None) -> None:
        """Tells the twin, and so the recording, that somebody takes care of an incident."""
        if incident is not None and (until := self._until(incident, ACKNOWLEDGED)):
            self.session.say(lambda twin: twin.acknowledge(incident.id, operator(), until))
            self.say(f"acknowledged until {clock(until)} UTC: {incident.kind} {incident.cause}")

    def silence(self, incident: Incident | None) -> None:
        """Mutes what has the cause of an incident, or lies below it, for a while."""
        if incident is not None and (until := self._until(incident, SILENCED)):
            self.session.say(lambda twin: twin.silence(incident.cause, operator(), until))
            self.say(f"silenced until {clock(until)} UTC: {incident.cause}")

    def _until(self, incident: Incident, minutes: int) -> int:
        """Event time some minutes from now; 0, and a note, where there is nothing to be done."""
        if not incident.is_open:
            self.say("it is resolved")
        elif self.session.state == "ended":
            self.say("the session has ended: nothing is watched any more")
        elif self.shown.snapshot is not None:
            return self.shown.snapshot.time + minutes * 60 * 1_000_000_000
        return 0

    # --- notes and the clipboard ---

    def say(self, text: str) -> None:
        """Says something in the line of keys, for a moment."""
        self.note = text
        self._show(self.shown)
        self.set_timer(NOTE_SECONDS, lambda: self._unsay(text))

    def _unsay(self, text: str) -> None:
        if self.note == text:
            self.note = ""
            self._show(self.shown)

    def copy(self, incident: Incident | None) -> None:
        """Copies an incident as text for a ticket."""
        if incident is None or self.shown.snapshot is None:
            self.say("no incident to copy")
            return
        from tui.rows.detail import ticket
        from tui.rows.verdict import headline

        text = ticket(incident, self.shown.snapshot.time, self.session.title)
        self.copy_to_clipboard(text)
        self.say(f"sent to the terminal's clipboard: {headline(incident)}, {len(text.splitlines())} lines")
