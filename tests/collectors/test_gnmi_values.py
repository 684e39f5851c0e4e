"""What gNMI messages mean, one by one and without a server. They are pygnmi's, read by our own classes."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pygnmi.spec.v080.gnmi_pb2 as pb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.gnmi import messages as m
from collectors.gnmi.clock import STEP, DeviceClock
from collectors.gnmi.interfaces import MOST, Interfaces
from collectors.gnmi.subscription import WISHES, best_encoding, request
from collectors.gnmi.values import counter, plain, speed, up
from tests.rigs.gnmi import Port, arista, ietf, path, sonic, tree, typed
from twin.frames import UNKNOWN_U64

BIG = 2**63 + 2**53 + 1  # neither a float nor a signed number holds this
NOW = 1_764_547_200 * 10**9


def sent(theirs: Any) -> Any:
    """A Notification of the other implementation as ours reads it from the wire."""
    return m.Notification.FromString(theirs.SerializeToString())


def read(*notifications: pb.Notification) -> Interfaces:
    table = Interfaces()
    for one in notifications:
        table.take(sent(one), NOW)
    return table


def said(text: str, value: pb.TypedValue, **of: Any) -> pb.Notification:
    out = pb.Notification(**of)
    out.update.add(path=path(text), val=value)
    return out


def of(table: Interfaces, *names: str) -> dict[str, list[float | int | None]]:
    """Every metric of these interfaces, None where unknown."""
    rows = np.array([table.names.index(n) for n in names or table.names], dtype=np.intp)
    out: dict[str, list[float | int | None]] = {}
    for metric, values in {**table.states(rows), **table.counts(rows)}.items():
        out[metric] = [None if v != v or v == int(UNKNOWN_U64) else v for v in values.tolist()]
    return out


def known(table: Interfaces, name: str) -> dict[str, float | int]:
    return {metric: v for metric, (v,) in of(table, name).items() if v is not None}


COUNTERS = {
    "in-octets": BIG, "out-octets": BIG + 1, "in-pkts": 11, "out-pkts": 12, "out-discards": 3, "in-errors": 4,
    "carrier-transitions": 7, "in-unicast-pkts": 1, "in-unknown-protos": 9,
}  # fmt: skip
MEANS = {
    "rx_bytes": BIG, "tx_bytes": BIG + 1, "rx_packets": 11, "tx_packets": 12, "tx_discards": 3, "rx_errors": 4,
    "link_downed": 3, "up": 1.0, "speed_bits_per_second": 400e9,
}  # fmt: skip


@pytest.mark.parametrize("habit", [sonic, arista, tree])
def test_every_habit_gives_the_same_numbers_to_the_last_digit(habit: Any) -> None:
    ports = {name: Port(counters=dict(COUNTERS)) for name in ("Ethernet0", "Ethernet4")}
    ports["Ethernet4"].status = "DOWN"
    table = read(*habit(ports, 0.0, NOW, True))
    assert table.names == ["Ethernet0", "Ethernet4"]
    assert known(table, "Ethernet0") == MEANS
    down = {**MEANS, "up": 0.0}
    del down["speed_bits_per_second"]
    assert known(table, "Ethernet4") == down


@pytest.mark.parametrize(
    ("status", "means"),
    [
        ("UP", 1.0), ("DOWN", 0.0), ("LOWER_LAYER_DOWN", 0.0), ("NOT_PRESENT", 0.0), ("DORMANT", 0.0),
        ("TESTING", 0.0), ("openconfig-interfaces:UP", 1.0), ("down", 0.0),
        ("UNKNOWN", None), ("", None), ("UPPER", None),
    ],
)  # fmt: skip
def test_a_status_is_up_or_down_and_what_is_neither_is_unknown(status: str, means: float | None) -> None:
    table = read(
        said("interfaces/interface[e]/state/oper-status", typed(status)),
        said("interfaces/interface[e]/ethernet/state/port-speed", typed("SPEED_400GB")),
    )
    assert of(table, "e")["up"] == [means]
    assert of(table, "e")["speed_bits_per_second"] == [400e9 if means == 1 else None]


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("SPEED_400GB", 400e9), ("openconfig-if-ethernet:SPEED_800GB", 800e9), ("SPEED_2500MB", 2.5e9),
        ("SPEED_100Gb", 100e9), ("SPEED_1600GB", 1.6e12), ("200G", 200e9),
        ("SPEED_UNKNOWN", math.nan), ("SPEED_0GB", math.nan), ("400", math.nan), (400, math.nan), (None, math.nan),
    ],
)  # fmt: skip
def test_a_speed_is_read_from_its_identity_and_nothing_else(text: Any, bits: float) -> None:
    assert speed(text) == pytest.approx(bits, nan_ok=True)


def test_the_negotiated_speed_comes_before_the_configured_one() -> None:
    table = read(
        said("interfaces/interface[e]/state/oper-status", typed("UP")),
        said("interfaces/interface[e]/ethernet/state/port-speed", typed("SPEED_400GB")),
        said("interfaces/interface[e]/ethernet/state/negotiated-port-speed", typed("SPEED_200GB")),
    )
    assert of(table, "e")["speed_bits_per_second"] == [200e9]
    table.take(
        sent(said("interfaces/interface[e]/ethernet/state/negotiated-port-speed", typed("SPEED_UNKNOWN"))), NOW
    )
    assert of(table, "e")["speed_bits_per_second"] == [400e9]


@pytest.mark.parametrize(
    ("value", "means"),
    [
        (pb.TypedValue(uint_val=BIG), BIG),
        (pb.TypedValue(int_val=5), 5),
        (pb.TypedValue(int_val=-5), None),
        (pb.TypedValue(string_val=str(BIG)), BIG),
        (pb.TypedValue(ascii_val="17"), 17),
        (pb.TypedValue(json_val=b"17"), 17),
        (pb.TypedValue(json_val=str(BIG).encode()), BIG),
        (pb.TypedValue(json_ietf_val=f'"{BIG}"'.encode()), BIG),
        (pb.TypedValue(json_ietf_val=b'{"openconfig-interfaces:in-octets": "17"}'), 17),
        (pb.TypedValue(double_val=17.0), 17),
        (pb.TypedValue(double_val=2.0**60), None),
        (pb.TypedValue(float_val=1.5), None),
        (pb.TypedValue(double_val=math.inf), None),
        (pb.TypedValue(decimal_val=pb.Decimal64(digits=1700, precision=2)), 17),
        (pb.TypedValue(decimal_val=pb.Decimal64(digits=1750, precision=2)), None),
        (pb.TypedValue(decimal_val=pb.Decimal64(digits=1, precision=4_000_000_000)), None),
        (pb.TypedValue(leaflist_val=pb.ScalarArray(element=[pb.TypedValue(uint_val=17)])), 17),
        (pb.TypedValue(leaflist_val=pb.ScalarArray(element=[pb.TypedValue(uint_val=1)] * 2)), None),
        (pb.TypedValue(uint_val=2**64 - 1), None),
        (pb.TypedValue(bool_val=True), None),
        (pb.TypedValue(bytes_val=b"17"), None),
        (pb.TypedValue(string_val="-1"), None),
        (pb.TypedValue(string_val="N/A"), None),
        (pb.TypedValue(json_val=b"{broken"), None),
        (pb.TypedValue(json_val=b"null"), None),
        (pb.TypedValue(json_val=b"[" * 100_000), None),
        (pb.TypedValue(), None),
    ],
)
def test_a_count_is_read_from_every_type_that_holds_one_and_otherwise_unknown(
    value: pb.TypedValue, means: int | None
) -> None:
    table = read(said("interfaces/interface[e]/state/counters/in-octets", value))
    assert of(table, "e").get("rx_bytes", [None]) == [means]


def test_packets_are_the_sum_of_three_kinds_where_the_switch_gives_no_total_and_unknown_where_one_lacks() -> None:
    kinds = {f"in-{kind}-pkts": n for kind, n in (("unicast", 1), ("multicast", 20), ("broadcast", 300))}
    whole, part = Port(counters=kinds), Port(counters={k: v for k, v in kinds.items() if "broad" not in k})
    table = read(*arista({"a": whole, "b": part}, 0.0, NOW, True))
    assert of(table, "a", "b")["rx_packets"] == [321, None]
    table.take(sent(said("interfaces/interface[b]/state/counters/in-pkts", typed(7))), NOW)
    assert of(table, "a", "b")["rx_packets"] == [None, 7]  # one way of counting for a whole switch


def test_errors_that_cumulus_counts_are_found_at_their_old_and_new_places() -> None:
    old = said("interfaces/interface[swp1]/ethernet/phy/state/rs-fec-uncorrectable-blocks", typed(5))
    new = said("interfaces/interface[swp2]/phy/fec/state/rs-fec-uncorrectable-blocks", typed(6))
    symbol = said("interfaces/interface[swp2]/phy/state/symbol-errors", typed(7))
    table = read(old, new, symbol)
    assert of(table)["fec_uncorrected"] == [5, 6] and of(table)["symbol_errors"] == [None, 7]


@pytest.mark.parametrize(
    ("prefix", "text", "value"),
    [
        ("", "", {"interfaces": {"interface": [{"name": "e", "state": {"oper-status": "UP"}}]}}),
        ("", "interfaces/interface", [{"state": {"oper-status": "UP"}, "openconfig-interfaces:name": "e"}]),
        ("interfaces", "interface[e]", {"oc-if:interface": [{"name": "e", "state": {"oper-status": "UP"}}]}),
        ("interfaces/interface[e]", "state", {"openconfig-interfaces:state": {"oper-status": "UP"}}),
        ("interfaces/interface[e]/state", "", {"oper-status": "UP", "counters": None, "mtu": 9100}),
        ("openconfig-interfaces:interfaces/interface[e]", "state/oper-status", "UP"),
        ("", "interfaces/interface[e]/state/oper-status", {"openconfig-interfaces:oper-status": "UP"}),
    ],
)  # fmt: skip
def test_json_may_begin_at_any_place_of_the_tree(prefix: str, text: str, value: Any) -> None:
    table = read(said(text, ietf(value), prefix=path(prefix)))
    assert table.names == ["e"] and of(table)["up"] == [1]


def test_names_with_slashes_and_odd_letters_are_kept_as_they_are() -> None:
    names = ["Ethernet1/1", "et-0/0/1:2", "swp1s0", "é 1"]
    table = read(*arista({n: Port() for n in names}, 0.0, NOW, True))
    assert table.names == names


def test_other_parts_of_the_tree_are_passed_over() -> None:
    table = read(
        said("interfaces/interface[e]/subinterfaces/subinterface[0]/state/oper-status", typed("DOWN")),
        said("interfaces/interface[e]/state/admin-status", typed("DOWN")),
        said("lldp/interfaces/interface[e]/state/oper-status", typed("DOWN")),
        said("interfaces/interface[*]/state/oper-status", typed("DOWN")),
    )
    assert table.names == []


def test_what_is_deleted_is_unknown_and_what_is_updated_beside_it_is_not() -> None:
    ports = {n: Port(counters=dict(COUNTERS)) for n in ("a", "b", "c")}
    everything = list(arista(ports, 0.0, NOW, True))
    table = read(*everything)
    gone = pb.Notification(prefix=path("interfaces"))
    gone.delete.add().CopyFrom(path("interface[a]"))
    gone.delete.add().CopyFrom(path("interface[b]/state/counters"))
    gone.delete.add().CopyFrom(path("interface[nobody]"))
    gone.update.add(path=path("interface[b]/state/counters/in-octets"), val=typed(8))
    table.take(sent(gone), NOW)
    assert known(table, "a") == {}
    assert known(table, "b") == {"up": 1, "speed_bits_per_second": 400e9, "rx_bytes": 8}
    assert known(table, "c") == MEANS
    assert of(table, "a")["tx_bytes"] == [None]  # told of as unknown, not left out
    everyone = pb.Notification()
    everyone.delete.add().CopyFrom(path("interfaces/interface[*]/state/oper-status"))
    table.take(sent(everyone), NOW)
    assert of(table)["up"] == [None, None, None]


def test_an_atomic_notification_replaces_all_below_its_prefix() -> None:
    table = read(*arista({"e": Port(counters=dict(COUNTERS))}, 0.0, NOW, True))
    atomic = said("in-octets", typed(5), prefix=path("interfaces/interface[e]/state/counters"), atomic=True)
    table.take(sent(atomic), NOW)
    assert known(table, "e") == {"rx_bytes": 5, "up": 1, "speed_bits_per_second": 400e9}


def test_a_switch_that_never_ends_naming_interfaces_fills_no_memory() -> None:
    table = Interfaces()
    for n in range(MOST + 20):
        table.take(sent(said(f"interfaces/interface[vlan{n}]/state/oper-status", typed("UP"))), NOW)
    assert len(table.names) == MOST and table.full
    for n in range(70_000):
        table.take(sent(said(f"x{n}", typed("UP"))), NOW)
    assert sum(len(known) for known in table._paths.values()) < 70_000


def test_numbers_that_were_not_renewed_are_not_fresh() -> None:
    table = read(*arista({n: Port(counters={"in-octets": 1}) for n in ("a", "b")}, 0.0, NOW, True))
    rows = np.arange(2)
    assert table.fresh(rows).tolist() == [True, True] and table.counted == NOW
    table.settle()
    table.take(sent(said("interfaces/interface[b]/state/counters/in-octets", typed(2))), NOW + 5)
    table.take(sent(said("interfaces/interface[a]/state/oper-status", typed("DOWN"))), NOW + 9)
    assert table.fresh(rows).tolist() == [False, True] and table.counted == NOW + 5


# --- time ---


def test_the_time_of_a_sample_does_not_depend_on_the_way_it_took() -> None:
    clock, wrong = DeviceClock(), 3600 * 10**9
    clock.ours(NOW + wrong, NOW + 2_000_000)
    for second, delay in ((1, 300_000_000), (2, 2_000_000), (3, 900_000_000)):
        stamp = NOW + wrong + second * 10**9
        ours = clock.ours(stamp, NOW + second * 10**9 + delay)
        assert ours == pytest.approx(NOW + second * 10**9 + 2_000_000, abs=6_000_000)


def test_a_clock_that_is_set_is_followed_and_one_that_was_never_set_is_not_believed() -> None:
    clock = DeviceClock()
    assert clock.ours(NOW, NOW) == NOW
    assert clock.ours(NOW - 2 * STEP, NOW + 10) == NOW + 10
    for stamp in (0, 1_764_547_200, -5):
        assert clock.ours(stamp, NOW) == NOW


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(NOW, NOW + 10**12)), max_size=20))
def test_no_sample_is_later_than_its_arrival(heard: list[tuple[int, int]]) -> None:
    clock = DeviceClock()
    for stamp, arrival in heard:
        assert clock.ours(stamp, arrival) <= arrival


# --- requests ---


def test_requests_say_on_the_wire_what_the_other_implementation_reads() -> None:
    theirs = pb.SubscribeRequest.FromString(request(0, m.PROTO, 2.5).SerializeToString()).subscribe
    assert (theirs.mode, theirs.encoding) == (pb.SubscriptionList.STREAM, pb.PROTO)
    asked = {"/".join(e.name for e in one.path.elem): one for one in theirs.subscription}
    counters, status = asked["interfaces/interface/state/counters"], asked["interfaces/interface/state/oper-status"]
    assert (counters.mode, counters.sample_interval) == (pb.SAMPLE, 2_500_000_000)
    assert (status.mode, status.sample_interval) == (pb.ON_CHANGE, 0)
    assert dict(status.path.elem[1].key) == {"name": "*"} and status.path.origin == "openconfig"
    assert len(asked) == len(WISHES[0])


def test_typed_values_are_preferred_and_json_is_asked_of_one_that_does_not_say() -> None:
    assert best_encoding([m.JSON, m.PROTO]) == m.PROTO and best_encoding([m.JSON]) == m.JSON
    assert best_encoding([]) == m.JSON_IETF == pb.JSON_IETF


# --- whatever comes ---

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=8),
    st.sampled_from(["UP", "DOWN", "SPEED_400GB", "7", str(2**64 - 1)]),
)  # fmt: skip
NODES = st.sampled_from(
    ["interfaces", "interface", "openconfig-interfaces:interface", "state", "counters", "in-octets", "in-pkts",
     "name", "oper-status", "ethernet", "port-speed", "phy", "fec", "x", ""]
)  # fmt: skip
TREES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NODES, inner, max_size=4), max_leaves=12
)
PATHS = st.lists(st.tuples(NODES, st.dictionaries(st.sampled_from(["name", "id"]), st.text(max_size=4))), max_size=6)


def path_of(parts: list[tuple[str, dict[str, str]]]) -> pb.Path:
    made = pb.Path()
    for name, key in parts:
        made.elem.add(name=name, key=key)
    return made


@st.composite
def values(draw: st.DrawFn) -> pb.TypedValue:
    kind = draw(st.sampled_from(["json", "text", "uint", "int", "double", "decimal", "bytes", "none"]))
    if kind == "json":
        return pb.TypedValue(json_ietf_val=json.dumps(draw(TREES)).encode())
    made = {
        "text": lambda: pb.TypedValue(string_val=draw(st.text(max_size=10))),
        "uint": lambda: pb.TypedValue(uint_val=draw(st.integers(0, 2**64 - 1))),
        "int": lambda: pb.TypedValue(int_val=draw(st.integers(-(2**63), 2**63 - 1))),
        "double": lambda: pb.TypedValue(double_val=draw(st.floats())),
        "decimal": lambda: pb.TypedValue(
            decimal_val=pb.Decimal64(digits=7, precision=draw(st.integers(0, 2**32 - 1)))
        ),
        "bytes": lambda: pb.TypedValue(json_val=draw(st.binary(max_size=30))),
        "none": pb.TypedValue,
    }
    return made[kind]()


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(PATHS, PATHS, values(), st.booleans()), max_size=6))
def test_no_update_breaks_the_table_or_makes_an_impossible_number(updates: list[Any]) -> None:
    table = Interfaces()
    for prefix, where, value, atomic in updates:
        one = pb.Notification(prefix=path_of(prefix), atomic=atomic)
        one.update.add(path=path_of(where), val=value)
        one.delete.add().CopyFrom(path_of(where[:3]))
        table.take(sent(one), NOW)
    rows = np.arange(len(table.names))
    states = table.states(rows)
    assert set(np.unique(states["up"][~np.isnan(states["up"])])) <= {0.0, 1.0}
    assert not (states["speed_bits_per_second"] <= 0).any()
    assert all(column.dtype == np.uint64 for column in table.counts(rows).values())


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_message_with_bytes_changed_gives_an_error_of_the_protocol_or_a_table(data: st.DataObject) -> None:
    ports = {"Ethernet0": Port(counters=dict(COUNTERS))}
    (whole,) = data.draw(st.sampled_from([sonic, tree]))(ports, 0.0, NOW, True)
    raw = bytearray(pb.SubscribeResponse(update=whole).SerializeToString())
    for at, byte in data.draw(st.lists(st.tuples(st.integers(0, len(raw) - 1), st.integers(0, 255)), max_size=5)):
        raw[at] = byte
    try:
        answer = m.SubscribeResponse.FromString(bytes(raw[: data.draw(st.integers(0, len(raw)))]))
    except m.Unreadable:
        return
    table = Interfaces()
    table.take(answer.update, NOW)
    assert len(table.names) <= 2


@given(st.integers(0, 2**64 - 2))
def test_every_count_comes_through_in_all_forms(count: int) -> None:
    forms = (pb.TypedValue(uint_val=count), ietf(count), pb.TypedValue(json_val=json.dumps(count).encode()))
    for form in forms:
        assert counter(plain(m.TypedValue.FromString(form.SerializeToString()))) == count
    assert math.isnan(up(count))


PLACES = {"in-octets": "rx_bytes", "out-octets": "tx_bytes", "in-errors": "rx_errors", "out-discards": "tx_discards"}
WRITES = st.tuples(
    st.sampled_from(["Ethernet0", "Ethernet4", "et-0/0/1"]), st.sampled_from(sorted(PLACES)),
    st.integers(0, 2**64 - 2), st.integers(0, 5), st.integers(0, 5), st.booleans(),
)  # fmt: skip


def written(name: str, leaf: str, count: int, cut: int, deep: int, as_json: bool) -> pb.Notification:
    """One count; `cut` names of its path in the prefix, and what is below `deep` names as a JSON tree."""
    names = ["interfaces", f"interface[{name}]", "state", "counters", leaf]
    deep = max(cut, deep)
    value: Any = str(count)
    for part in reversed(names[deep:]):
        value = {"interface": [{"name": name, **value}]} if part.startswith("interface[") else {part: value}
    form = ietf(value) if as_json or deep < len(names) else typed(count)
    return said("/".join(names[cut:deep]), form, prefix=path("/".join(names[:cut])))


@settings(max_examples=200, deadline=None)
@given(st.lists(WRITES, min_size=1, max_size=12))
def test_the_last_count_stands_however_paths_are_cut_and_values_wrapped(writes: list[Any]) -> None:
    table = read(*(written(*write) for write in writes))
    expected: dict[str, dict[str, int]] = {}
    for name, leaf, count, *_ in writes:
        expected.setdefault(name, {})[PLACES[leaf]] = count
    assert {name: known(table, name) for name in table.names} == expected
