"""The command line. Each command lives in a module of its own, imported when it is called."""

from __future__ import annotations

import os
import sys
from importlib import import_module

import click

from twin.errors import FabrictwinError

OK, WARNINGS, CRITICAL, CANNOT_RUN = 0, 1, 2, 3

_COMMANDS = {
    "demo": ("tui.commands.demo", "A simulated fabric with faults, in the screen; nothing to configure."),
    "watch": ("tui.commands.watch", "Live: a site, or this host's own interfaces."),
    "check": ("tui.commands.check", "One verdict without a screen, for scripts and cron."),
    "record": ("tui.commands.record", "Record a site into a trace, without a screen."),
    "agent": ("tui.commands.agent", "This host's telemetry to MQTT, for a monitor elsewhere."),
    "replay": ("tui.commands.replay", "Play a trace in the screen."),
    "analyze": ("tui.commands.analyze", "Judge a trace with today's detectors."),
    "import": ("tui.commands.importing", "History of a Prometheus-compatible store as a trace."),
    "drill": ("tui.commands.drill", "Run drills: simulated failures with what must be found."),
    "whatif": ("tui.commands.whatif", "What a failure would cost; every single one, ranked."),
    "topology": ("tui.commands.topology", "The wiring: show, validate, export, discover, presets."),
    "trace": ("tui.commands.trace", "Convert, cut, merge, verify, anonymize and describe traces."),
    "doctor": ("tui.commands.doctor", "What can be read here, or of a site; what not, and what to do about it."),
    "config": ("tui.commands.config", "What the screen is set to: colours, the first view, keys."),
}
_EPILOG = """\b
Examples:
  fabrictwin demo                                   watch a plane fail and recover
  fabrictwin check site.yaml --for 10s --json       one verdict, exit code 0, 1 or 2
  fabrictwin topology show b300-superpod-xdr        what a fabric is made of
  fabrictwin analyze incident.mcap                  what happened, from a recording

Exit codes: 0 healthy or done, 1 warnings, 2 critical or a drill failed, 3 cannot run."""


class Commands(click.Group):
    """Commands by name, each imported when it is needed, so that none pays for another."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        command: click.Command = import_module(_COMMANDS[name][0]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in _COMMANDS.items()])


@click.group(cls=Commands, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="fabrictwin", prog_name="fabrictwin")
def cli() -> None:
    """A terminal monitor and digital twin for GPU fabrics: what is broken, what it costs each GPU."""


def main(arguments: list[str] | None = None) -> None:
    """Runs the command line and exits; every error for the user is one line on stderr and exit code 3."""
    sys.exit(run(arguments))


def run(arguments: list[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    try:
        code = cli.main(arguments, prog_name="fabrictwin", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else OK
    except FabrictwinError as problem:
        return _complain(str(problem))
    except click.exceptions.NoArgsIsHelpError as problem:
        click.echo(problem.format_message())
        return OK
    except click.UsageError as problem:
        where = f" (see `{problem.ctx.command_path} --help`)" if problem.ctx is not None else ""
        return _complain(problem.format_message() + where)
    except click.ClickException as problem:
        return _complain(problem.format_message())
    except (click.Abort, KeyboardInterrupt):
        return 130
    except (BrokenPipeError, SystemExit):  # the reader of our output went away, as `| head` does; click exits on it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except OSError as problem:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _complain(f"cannot go on: {problem.strerror or problem}")


def _complain(text: str) -> int:
    for line in text.splitlines() or ["unknown error"]:
        click.echo(f"fabrictwin: {line}", err=True)
    return CANNOT_RUN


if __name__ == "__main__":
    main()
