"""Bad input: one clear error with its place, whatever the format, and never anything else."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from importer_inputs import CASES, FIXTURES, found, wired

from twin.errors import InputError
from twin.topology.importers.source import LIMITS

SUFFIXES = {"slurm": ".yaml"}


def refused(path: Path, option: str) -> str:
    with pytest.raises(InputError) as problem:
        found(option, f"h1={path}" if option in ("lldp", "nvidia-smi", "nccl", "nvml") else path)
    text = str(problem.value)
    assert str(path) in text
    return text


@pytest.mark.parametrize(("option", "name"), CASES)
@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "empty"),
        (b" \n\n", "empty"),
        (b"\x7fELF\x02\x01\x00\x00", "binary"),
        (b"\n\nnode: \xff\xfe", ":3: not UTF-8"),
        (b"Lorem ipsum dolor\nsit amet\n", ""),
        (b"{}", ""),
        (b"[]", ""),
        (b"[" * 5000, ""),
        (b'{"a": ' * 5000, ""),
        (b'{"nodes": [1], "links": [2], "lldp": 3, "switches": 4, "blocks": 5, "topology": 6}', ""),
        (b"<system version='1'></system>", ""),
    ],
)
def test_what_is_no_such_file_is_refused(tmp_path: Path, option: str, name: str, content: bytes, says: str) -> None:
    """Empty, binary, not UTF-8, another format, nested beyond reason."""
    path = tmp_path / name
    path.write_bytes(content)
    assert says in refused(path, option)


@pytest.mark.parametrize(("option", "name"), CASES)
def test_what_is_too_large_is_refused_at_once(tmp_path: Path, option: str, name: str) -> None:
    """100 MB take no minutes and no gigabytes."""
    path = tmp_path / name
    with path.open("wb") as stream:
        stream.truncate(max(LIMITS.values()) + 30_000_000)
    start = time.monotonic()
    assert "larger than" in refused(path, option)
    assert time.monotonic() - start < 5


@pytest.mark.parametrize(("option", "name"), CASES)
def test_a_cut_file_is_refused_or_read_in_part(tmp_path: Path, option: str, name: str) -> None:
    """JSON and XML cannot be read when cut; the error says where. Lines of text may make sense up to there."""
    whole = (FIXTURES / name).read_bytes()
    path = tmp_path / name
    for share in (0.3, 0.6, 0.9):
        path.write_bytes(whole[: int(len(whole) * share)])
        if name.endswith((".json", ".xml")):
            assert f"{path}:" in refused(path, option)


@pytest.mark.parametrize(
    "head",
    [
        '<!DOCTYPE system [<!ENTITY a "aaaaaaaa"><!ENTITY b "&a;&a;&a;">]>',
        '<!DOCTYPE system SYSTEM "file:///etc/passwd">',
        '<?xml version="1.0"?><!DOCTYPE system [<!ENTITY x SYSTEM "file:///etc/passwd">]>',
    ],
)
def test_xml_with_a_document_type_is_refused(tmp_path: Path, head: str) -> None:
    """No entity expands and no other file is read."""
    path = tmp_path / "x.xml"
    path.write_text(head + (FIXTURES / "nccl.xml").read_text())
    assert "document type declaration" in refused(path, "nccl")


@pytest.mark.parametrize("option", ["slurm", "containerlab", "topograph"])
@pytest.mark.parametrize(
    "content",
    [
        "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
        + "".join(f"{n}: &{n} [{', '.join([f'*{p}'] * 10)}]\n" for p, n in zip("abcdefgh", "bcdefghi", strict=True)),
        "a: &a [*a]\n",
        "? [a, b]\n: c\n",
        "a: !!bool maybe\n",
        "a: !!timestamp 2001-99-99\n",
        "a: !!python/object/apply:os.system [ls]\n",
        "a: 0x" + "f" * 9000,
        "x: {topology: {nodes: {1: {}}}}",
    ],
)
def test_yaml_that_would_harm_is_refused(tmp_path: Path, option: str, content: str) -> None:
    """Aliases that grow without end, aliases of themselves, odd keys and tags, huge numbers."""
    path = tmp_path / "x.yaml"
    path.write_text(content)
    refused(path, option)


@pytest.mark.parametrize(
    ("option", "name", "old", "new", "says"),
    [
        ("air", "air.json", '"leaf-p1-su001-r1", "interface": "swp1s0"', '"leaf-9", "interface": "swp1s0"',
         "content.links[0][1].node: there is no node 'leaf-9'"),
        ("air", "air.json", '"interface": "rail1p1"', '"interface": 1.5', "links[0][0].interface: expected a name"),
        ("spectrum-x", "spectrum_x.json", '"plane": 0, "su": 0', '"plane": "x", "su": 0', "expected a whole number"),
        ("netq", "netq.json", "h1-*-s1", "h1-s1", "[0].links[0].id: expected two nodes"),
        ("netq", "netq.json", '"tier": -1', '"tier": null', "compounded_nodes[0].tier: expected a whole number"),
        ("slurm", "topology.conf", "gpu[04-06]", "gpu[04-", ":4: a bracket is not closed"),
        ("slurm", "topology.conf", "Switches=rack[1-2]", "Switches=rack[1-3]", ":2: switch 'top' is above 'rack3'"),
        ("slurm", "topology.conf", "LinkSpeed=400", "LinkSped=400", ":3: expected SwitchName"),
        ("slurm", "topology.yaml", "nodes: tray[01-18]", "nodes: [[1]]", ":9: "),
        ("containerlab", "lab.clab.yml", "gpu1:eth2", "gpu9:eth2", ":15: topology.links[1]: there is no node 'gpu9'"),
        ("topograph", "topograph.yaml", "tray[19-36]", "leaf-a", "'leaf-a' is a switch and a node"),
        ("nvidia-smi", "topo-m.txt", "GPU2\tNV4", "GPU2\tQQ4", ":4: 'QQ4' is no connection"),
        ("nvidia-smi", "topo-m.txt", "GPU3\tNV4", "GPU7\tNV4", "the line of GPU3 is missing"),
        ("nccl", "nccl.xml", "</cpu>", "</gpu>", ":14:5: not XML"),
        ("lldp", "lldp.json", '"lldp": [', '"lldp": [[[', "not JSON"),
    ],
)  # fmt: skip
def test_a_mistake_is_said_with_its_place(
    tmp_path: Path, option: str, name: str, old: str, new: str, says: str
) -> None:
    text = (FIXTURES / name).read_text()
    assert old in text
    path = tmp_path / name
    path.write_text(text.replace(old, new, 1))
    assert says in refused(path, option)


def survives(option: str, path: Path, content: bytes) -> None:
    """An error for a person, or wiring that can be written and read again, and nothing else."""
    path.write_bytes(content)
    try:
        topo = found(option, f"h1={path}" if option in ("lldp", "nvidia-smi", "nccl", "nvml") else path)
    except InputError as problem:
        assert problem.problems
        assert all(text.isprintable() for text in problem.problems)
    else:
        wired(topo)


@pytest.mark.parametrize(("option", "name"), CASES)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_changed_input_never_fails_otherwise(tmp_path: Path, option: str, name: str, data: st.DataObject) -> None:
    """Pieces cut out, doubled, swapped, or other bytes put in."""
    whole = (FIXTURES / name).read_bytes()
    for _ in range(data.draw(st.integers(1, 4))):
        a, b = sorted((data.draw(st.integers(0, len(whole))), data.draw(st.integers(0, len(whole)))))
        b = min(b, a + data.draw(st.sampled_from([1, 5, 40, 400])))
        piece = data.draw(
            st.sampled_from(
                [b"", whole[a:b] * 2, b"null", b"{}", b"[]", b'"', b"-1", b"1e999", b"\n", b"99999999999"]
            )
            | st.binary(max_size=6)
        )
        whole = whole[:a] + piece + whole[b:]
    survives(option, tmp_path / name, whole)


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(("option", "name"), [c for c in CASES if c[1].endswith((".json", ".yaml", ".yml"))])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_other_values_never_fail_otherwise(tmp_path: Path, option: str, name: str, data: st.DataObject) -> None:
    """Well-formed files with any value in any place."""
    import json

    import yaml

    text = (FIXTURES / name).read_text()
    if name == "lldp.json":
        text = text[text.index("{") : text.index("\n}\n") + 2]
    root = yaml.safe_load(text)
    for _ in range(data.draw(st.integers(1, 3))):
        holder = root
        while True:
            keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
            if not keys:
                break
            key = data.draw(st.sampled_from(keys))
            if isinstance(holder[key], dict | list) and data.draw(st.booleans()):
                holder = holder[key]
                continue
            holder[key] = data.draw(_VALUES)
            break
    survives(option, tmp_path / name, json.dumps(root).encode())
