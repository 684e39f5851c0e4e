"""Settings: what a person writes is taken or refused with its line; what the screen remembers never hinders it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from screen_samples import StillSession, broken, healthy
from test_screen_keys import running, text_of
from textual.keys import _character_to_key

from tui.app import FabricApp
from tui.colours import COLOURS
from tui.keymap import KEYS, bindings_of, is_key, textual_name
from tui.remembered import Remembered, recall, remember
from tui.settings import VIEWS, Settings, quoted, read_settings, template


def written(path: Path, text: str) -> tuple[Settings, list[str]]:
    path.write_text(text, encoding="utf-8")
    return read_settings(path)


def config(home: Path, *arguments: str) -> tuple[int, str, str]:
    """`fabrictwin config` of somebody who lives in `home`."""
    env = {"PATH": os.environ["PATH"], "XDG_CONFIG_HOME": str(home / "config"), "XDG_STATE_HOME": str(home / "state")}
    command = [sys.executable, "-m", "tui.main", "config", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=env, cwd=Path(__file__).parents[2])
    return done.returncode, done.stdout, done.stderr


def test_a_file_that_is_not_there_sets_nothing(tmp_path: Path) -> None:
    assert read_settings(tmp_path / "settings.toml") == (Settings(), [])


def test_what_is_set_is_taken(tmp_path: Path) -> None:
    text = 'theme = "light"\nview = "planes"\n[keys]\npause = "p"\nquit = "ctrl+x"\n'
    settings, problems = written(tmp_path / "s.toml", text)
    assert (settings, problems) == (Settings("light", "planes", {"pause": "p", "quit": "ctrl+x"}), [])


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ('\nthem = "dark"\n', 2, "'them' is no setting; did you mean theme?"),
        ('theme = "drak"\n', 1, "theme is 'drak'; did you mean dark?"),
        ("# view\nview = 3\n", 2, "view is 3; expected one of gpus, incidents"),
        ('[keys]\npause = "space"\nforward = "f"\n', 3, "'forward' has no key that can be changed"),
        ('[keys]\n"pause" = "enter"\n', 2, "pause is 'enter'; expected a character, space"),
        ('keys.pause = ""\n', 1, "pause is ''; expected a character"),
        ('[keys]\nhelp = "ctrl+i"\n', 2, "uses already"),
        ('[keys]\nhelp = "q"\n', 2, "help is 'q', the key of quit; each needs its own"),
        ("keys = 3\n", 1, "expected a table, [keys]"),
        ("[screen]\nwide = true\n", 1, "'screen' is no setting"),
        ('theme = "dark"\nview = \n', 2, "not TOML: "),
        ('view = "planes"\n' + "x = 1\n" * 2, 3, "not TOML: "),
    ],
)
def test_a_mistake_is_told_with_its_line_and_what_was_expected(
    tmp_path: Path, text: str, line: int, said: str
) -> None:
    path = tmp_path / "settings.toml"
    _, (problem,) = written(path, text)
    assert problem.startswith(f"{path}:{line}: ") and said in problem


def test_what_is_right_beside_a_mistake_is_used(tmp_path: Path) -> None:
    settings, problems = written(
        tmp_path / "s.toml", 'theme = "light"\nview = "plane"\n[keys]\nfoo = "x"\nhelp = "h"\n'
    )
    assert (settings.theme, settings.view, settings.keys) == ("light", "", {"help": "h"})
    assert [p.split(":")[1] for p in problems] == ["2", "4"]


def test_two_keys_may_change_places(tmp_path: Path) -> None:
    settings, problems = written(tmp_path / "s.toml", '[keys]\npause = "q"\nquit = "space"\n')
    assert problems == [] and settings.keys == {"pause": "q", "quit": "space"}


@pytest.mark.parametrize("make", [lambda p: p.mkdir(), lambda p: p.write_bytes(b"\xff\xfe")], ids=["folder", "bytes"])
def test_what_cannot_be_read_is_one_line(tmp_path: Path, make) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "settings.toml"
    make(path)
    settings, problems = read_settings(path)
    assert settings == Settings() and len(problems) == 1 and problems[0].startswith(f"{path}: ")


@given(st.text(st.characters(codec="utf-8"), max_size=200))
def test_no_text_at_all_breaks_the_reading(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "anything.toml"
    settings, problems = written(path, text)
    assert settings == Settings() or not problems
    assert all(p.startswith(str(path)) and "\n" not in p for p in problems)


def test_the_template_says_what_is_shipped_once_nothing_in_it_is_commented_out(tmp_path: Path) -> None:
    assert written(tmp_path / "a.toml", template()) == (Settings(), [])
    bare = "\n".join(line.removeprefix("# ") for line in template().splitlines()[3:])
    assert written(tmp_path / "b.toml", bare) == (Settings("dark", "overview", KEYS), [])


# --- the command ---------------------------------------------------------------------------------------


def test_config_writes_a_file_once_and_prints_what_counts(tmp_path: Path) -> None:
    path = Path(config(tmp_path, "path")[1].strip())
    assert path == tmp_path / "config/fabrictwin/settings.toml"
    assert config(tmp_path, "init") == (0, f"wrote {path}\n", "")
    code, out, err = config(tmp_path, "init")
    assert (code, out) == (3, "") and "is there already; --force replaces it" in err
    path.write_text('view = "incidents"\n[keys]\nquit = "x"\n')
    remember(Path(json.loads(config(tmp_path, "path", "--json")[1])["remembered"]), Remembered("light", "planes"))
    found = json.loads(config(tmp_path, "print", "--json")[1])
    assert (found["theme"], found["view"], found["keys"]) == ("light", "incidents", KEYS | {"quit": "x"})
    assert 'theme = "light"  # remembered\nview = "incidents"  # set\n' in config(tmp_path, "print")[1]
    assert config(tmp_path, "init", "--force")[0] == 0 and path.read_text() == template()


def test_config_print_exits_with_3_and_a_line_for_each_mistake(tmp_path: Path) -> None:
    path = tmp_path / "config/fabrictwin/settings.toml"
    path.parent.mkdir(parents=True)
    path.write_text("a = 1\n" + "\n" * 9 + 'theme = "no"\n')
    code, out, err = config(tmp_path, "print")
    assert (code, out) == (3, "")
    assert [line.partition(": ")[2].partition(": ")[0] for line in err.splitlines()] == [f"{path}:1", f"{path}:11"]


def test_config_init_where_nothing_can_be_written_is_one_line_and_3(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("a file where a folder should be")
    code, _, err = config(tmp_path, "init")
    assert code == 3 and err.count("\n") == 1 and "cannot be written: Not a directory" in err


# --- what the screen remembers -------------------------------------------------------------------------


def test_what_is_remembered_is_recalled_and_written_whole(tmp_path: Path) -> None:
    path = tmp_path / "state/fabrictwin/remembered.json"
    for what in (Remembered("light", "planes"), Remembered("colour-blind", "overview")):
        remember(path, what)
        assert recall(path) == what
    assert [p.name for p in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(
    "found", [b"", b"{", b"[]", b'{"theme": 3}', b"\xff", b'{"theme": "mauve", "view": "cellar"}', None]
)
def test_what_makes_no_sense_is_forgotten(tmp_path: Path, found: bytes | None) -> None:
    path = tmp_path / "remembered.json"
    path.mkdir() if found is None else path.write_bytes(found)
    assert recall(path) == Remembered()


def test_a_place_that_cannot_be_written_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where a folder should be")
    remember(tmp_path / "state/fabrictwin/remembered.json", Remembered("light"))
    (tmp_path / "remembered.json").mkdir()
    remember(tmp_path / "remembered.json", Remembered("light"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["remembered.json", "state"]


# --- in the screen -------------------------------------------------------------------------------------


def test_every_key_that_can_be_changed_is_one_of_the_screen_and_every_view_has_one() -> None:
    shipped = {b.id: b.key for b in FabricApp.BINDINGS if b.id}  # type: ignore[union-attr]
    assert bindings_of(KEYS) == shipped
    views = set(FabricApp.MODES) - {"starting"}
    assert views <= set(VIEWS) and views <= set(KEYS)


@given(st.characters(codec="ascii", exclude_categories=["Cc", "Cs"]))
def test_a_character_is_called_what_the_terminal_calls_it(character: str) -> None:
    assert is_key(character) or character == " "
    assert textual_name(character) == _character_to_key(character)


async def test_changed_keys_do_what_the_old_ones_did_and_the_screen_tells_them() -> None:
    async with running(StillSession(broken()), (120, 40), keys={"pause": "p", "planes": "f2"}) as (app, pilot):
        await pilot.press("space")
        assert not app.shown.paused
        await pilot.press("p", "f2")
        assert app.shown.paused and app.current_mode == "planes"
        assert "p pause" in text_of(app) and "f2 planes" in text_of(app)


async def test_the_screen_begins_in_its_view_and_colours_and_says_what_is_wrong() -> None:
    said = "settings.toml:1: 'them' is no setting"
    async with running(StillSession(healthy()), view="planes", colours="light", warning=said) as (app, _):
        assert app.current_mode == "planes" and app.colours == "light" and said in text_of(app)
        for name in [*list(COLOURS)[2:], "dark"]:
            app.action_colours()
            assert app.colours == name


def test_a_theme_name_can_be_quoted_whatever_it_holds(tmp_path: Path) -> None:
    _, (problem,) = written(tmp_path / "s.toml", f"theme = {quoted(chr(34) + chr(92))}\n")
    assert "theme is '\"\\\\'" in problem
