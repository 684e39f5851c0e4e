"""Files that stay open: read anew each time, never those of another directory, never more than there is room for."""

from __future__ import annotations

import gc
import os
import threading
from pathlib import Path

import pytest
from sysfs_tree import write

from collectors import sysfs
from collectors.sysfs import LOOK_AGAIN, Files


def opened() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_file_is_opened_once_and_each_reading_sees_what_it_holds_then(tmp_path: Path) -> None:
    files = Files(tmp_path)
    before = opened()
    for text in ("1\n", "22", "18446744073709551614\n"):
        write(tmp_path, {"n": text})
        assert files.present()
        assert files.number("n") == int(text)
        assert opened() == before + 1
    files.close()
    assert opened() == before


def test_files_that_are_dropped_unclosed_are_closed_with_their_owner(tmp_path: Path) -> None:
    write(tmp_path, {"a": "1", "b": "2"})
    gc.collect()
    before = opened()
    files = Files(tmp_path)
    assert files.present() and files.read("a") == "1" and files.read("b") == "2"
    assert opened() == before + 2
    del files
    gc.collect()
    assert opened() == before


def test_a_directory_that_is_made_again_or_swapped_is_another_one(tmp_path: Path) -> None:
    write(tmp_path, {"eth0": {"n": "1"}, "eth1": {"n": "2"}})
    files = Files(tmp_path / "eth0")
    assert files.present() and files.read("n") == "1"
    (tmp_path / "eth0").rename(tmp_path / "was0")
    assert not files.present() and not files.there
    (tmp_path / "eth1").rename(tmp_path / "eth0")
    assert files.present() and files.read("n") == "2"
    (tmp_path / "eth0").rename(tmp_path / "eth1")
    (tmp_path / "was0").rename(tmp_path / "eth0")
    assert files.present() and files.read("n") == "1", "swapped between two readings"


def test_a_missing_file_is_looked_for_again_after_a_while_and_at_once_in_a_new_directory(tmp_path: Path) -> None:
    files = Files(write(tmp_path / "d", {}))
    assert files.present() and files.read("late") is None
    write(tmp_path / "d", {"late": "7"})
    seen = []
    for _ in range(LOOK_AGAIN):
        files.present()
        seen.append(files.read("late"))
    assert seen == [None] * (LOOK_AGAIN - 1) + ["7"]
    write(tmp_path / "e", {"late": "8"})
    (tmp_path / "d").rename(tmp_path / "gone")
    (tmp_path / "e").rename(tmp_path / "d")
    assert files.present() and files.read("late") == "8"


def test_beyond_the_limit_files_are_read_without_staying_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sysfs, "_KEPT_OPEN", threading.Semaphore(2))
    write(tmp_path, {name: name for name in "abcdef"})
    files = Files(tmp_path)
    before = opened()
    for _ in range(3):
        assert files.present()
        assert [files.read(name) for name in "abcdef"] == list("abcdef")
        assert opened() == before + 2
    files.close()
    assert [files.read(name) for name in "fedcba"] == list("fedcba"), "room is given back"
    files.close()


def test_what_is_no_directory_or_cannot_be_opened_is_unknown(tmp_path: Path) -> None:
    write(tmp_path, {"file": "1", "below": {}})
    os.mkfifo(tmp_path / "pipe")
    assert not Files(tmp_path / "file").present()
    assert not Files(tmp_path / "a\0b").present()
    files = Files(tmp_path)
    assert files.present()
    assert [files.read(name) for name in ("below", "a\0b", "file/x", "x" * 300, "pipe")] == [None] * 5
    files.close()


def test_the_counters_of_a_real_interface_are_those_that_a_fresh_look_shows() -> None:
    """lo carries nothing of ours here; what was read before and after brackets what the open file says."""
    path = Path("/sys/class/net/lo/statistics/rx_bytes")
    files = Files(Path("/sys/class/net/lo"))
    for _ in range(3):
        low = int(path.read_text())
        assert files.present()
        value = files.number("statistics/rx_bytes")
        assert value is not None and low <= value <= int(path.read_text())
    files.close()
