"""The subscriber against a real mosquitto."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiomqtt
import numpy as np
import pytest

from collectors.base import CollectorError, Sample
from collectors.build import build
from collectors.mqtt.collector import MqttCollector
from collectors.mqtt.inbox import Inbox, Message
from collectors.mqtt.status import Status, agent_topic, encode_status, status_filter
from tests.rigs.mosquitto import Mosquitto, free_port, make_certificates
from twin.errors import InputError
from twin.frames import Frame, encode, to_line
from twin.site import Site
from twin.sitespecs import MqttSpec
from twin.topology.presets import preset

pytestmark = pytest.mark.service("mosquitto")

TOPIC = "fabrictwin/v1/site/pod0/n000/port"
NOW = 1_764_547_200_000_000_000
SITE = Site("site", preset("b300-superpod-ethernet"))


def frame(number: int = 0, source: str = "n000") -> Frame:
    return Frame(NOW + number, source, "port", ("n000/nic0/p0",), {"tx_bytes": np.array([number], np.uint64)})


def subscriber(broker: Mosquitto | int, directory: Path = Path(), **options: Any) -> MqttCollector:
    port = broker if isinstance(broker, int) else broker.port
    spec = MqttSpec.model_validate({"host": "127.0.0.1", "port": port, "every": "0.2s", **options})
    (collector,) = build(Site(SITE.name, SITE.topology, (spec,), directory=directory))
    assert isinstance(collector, MqttCollector)
    return collector


@asynccontextmanager
async def listening(collector: MqttCollector) -> AsyncIterator[MqttCollector]:
    """A subscriber whose connection stands."""
    try:
        await collector.collect()
        yield collector
    finally:
        await collector.close()


async def gather(collector: MqttCollector, count: int, seconds: float = 10.0) -> Sample:
    """What came until there were `count` frames, which it fails to wait for longer than `seconds`."""
    frames: list[Frame] = []
    warnings: list[str] = []
    async with asyncio.timeout(seconds):
        while len(frames) < count:
            sample = await collector.collect()
            frames += sample.frames
            warnings = list(sample.warnings)
    return Sample(frames, warnings)


async def publish(broker: Mosquitto, *messages: tuple[str, bytes], qos: int = 1, retain: bool = False) -> None:
    async with aiomqtt.Client("127.0.0.1", broker.port) as client:
        for topic, payload in messages:
            await client.publish(topic, payload, qos=qos, retain=retain)


@pytest.mark.parametrize("version", ["5", "3.1.1"])
async def test_frames_come_through_in_both_forms_with_the_source_of_their_sender(version: str) -> None:
    with Mosquitto() as broker:
        async with listening(subscriber(broker, version=version)) as collector:
            text = to_line(frame(1_000_000, "n001")).encode()
            await publish(broker, (TOPIC, encode(frame(7))), (TOPIC, text + b"\n" + text))
            sample = await gather(collector, 3)
    assert list(sample.frames) == [frame(7), frame(1_000_000, "n001"), frame(1_000_000, "n001")]
    assert sample.warnings == []


async def test_two_thousand_frames_with_qos_1_come_through_without_loss_and_in_order() -> None:
    with Mosquitto() as broker:
        async with listening(subscriber(broker)) as collector:
            sending = publish(broker, *((TOPIC, encode(frame(i))) for i in range(2000)))
            sample, _ = await asyncio.gather(gather(collector, 2000), sending)
    assert [f.time - NOW for f in sample.frames] == list(range(2000))


async def test_two_monitors_of_one_share_divide_the_frames_and_both_hear_who_is_offline() -> None:
    gone = Status("offline", "n000", {"n000": 1.0, "n000:nvml": 1.0})
    with Mosquitto() as broker:
        options = {"share": "monitors"}
        async with listening(subscriber(broker, **options)) as a, listening(subscriber(broker, **options)) as b:
            messages = [(TOPIC, encode(frame(i))) for i in range(100)]
            await publish(broker, *messages, (agent_topic("site", "pod0", "n000", "STATUS"), encode_status(gone)))
            got: list[list[Frame]] = [[], []]
            async with asyncio.timeout(10):
                while sum(f.kind == "port" for fs in got for f in fs) < 100:
                    for frames, collector in zip(got, (a, b), strict=True):
                        frames += (await collector.collect()).frames
    ports = [[f.time - NOW for f in frames if f.kind == "port"] for frames in got]
    assert sorted(ports[0] + ports[1]) == list(range(100))
    assert min(map(len, ports)) > 20
    assert all(("n000", "n000:nvml") in [f.names for f in frames if f.kind == "source"] for frames in got)


def test_statuses_are_found_within_any_filter_that_reaches_them() -> None:
    assert status_filter("fabrictwin/v1/#") == "fabrictwin/v1/+/+/+/STATUS"
    assert status_filter("fabrictwin/v1/prod/pod3/#") == "fabrictwin/v1/prod/pod3/+/STATUS"
    assert status_filter("#") == "+/+/+/+/+/STATUS"
    assert status_filter("fabrictwin/v1/prod/pod3/n1/+") == "fabrictwin/v1/prod/pod3/n1/STATUS"
    assert status_filter("fabrictwin/v1/prod/pod3/n1/port") is None
    assert status_filter("telegraf/+") is None


async def test_a_user_with_the_right_password_is_let_in_and_a_wrong_one_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("right\n")
    right = {"username": "fab", "password": {"file": "password"}}
    with Mosquitto(users={"fab": "right"}) as broker:
        async with listening(subscriber(broker, tmp_path, **right)):
            pass
        (tmp_path / "password").write_text("wrong")
        for version in ("5", "3.1.1"):
            for options in (right, {}):
                refused = subscriber(broker, tmp_path, version=version, **options)
                with pytest.raises(CollectorError, match=r"refuses .*check username and password"):
                    await refused.collect()
                await refused.close()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.mark.parametrize(
    "tls",
    [
        {"ca": "ca.pem"},
        {"ca": "ca.pem", "server_name": "broker.test"},
        {"ca": "ca.pem", "cert": "client.pem", "key": "client.key"},
        {"insecure": True},
    ],
)
async def test_tls_lets_frames_through(certificates: Path, tls: dict[str, Any]) -> None:
    with Mosquitto(certificates=certificates, mutual="cert" in tls) as broker:
        async with listening(subscriber(broker, certificates, tls=tls)):
            pass


@pytest.mark.parametrize(
    ("tls", "told"),
    [
        ({"ca": "other.pem"}, "certificate is not trusted .*check tls: ca"),
        ({"ca": "ca.pem", "server_name": "elsewhere.test"}, "certificate is not trusted .*server_name"),
        ({}, "certificate is not trusted"),
    ],
)
async def test_a_broker_that_cannot_be_trusted_is_one_clear_line(
    certificates: Path, tls: dict[str, Any], told: str
) -> None:
    with Mosquitto(certificates=certificates) as broker:
        collector = subscriber(broker, certificates, tls=tls)
        with pytest.raises(CollectorError, match=told):
            await collector.collect()
        await collector.close()


async def test_a_broker_that_wants_a_client_certificate_gets_none_and_that_is_told(
    certificates: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with Mosquitto(certificates=certificates, mutual=True) as broker:
        collector = subscriber(broker, certificates, tls={"ca": "ca.pem"}, every="3s")
        with pytest.raises(CollectorError, match="certificate"):
            await collector.collect()
        await collector.close()
    assert capfd.readouterr().err == ""


def test_certificates_that_cannot_be_used_are_a_mistake_of_the_site(certificates: Path) -> None:
    for tls, told in (
        ({"ca": "none.pem"}, "ca none.pem cannot be used: No such file"),
        ({"ca": "client.csr"}, "ca client.csr cannot be used"),
        ({"ca": "ca.pem", "cert": "client.pem"}, "cert and key belong together"),
        ({"ca": "ca.pem", "cert": "client.pem", "key": "server.key"}, "do not match"),
    ):
        with pytest.raises(InputError, match=told):
            subscriber(1, certificates, tls=tls)


async def test_no_broker_is_a_failure_and_its_coming_is_seen_without_another_try() -> None:
    broker = Mosquitto()
    collector = subscriber(broker)
    with pytest.raises(CollectorError, match=f"broker 127.0.0.1:{broker.port} cannot be reached: .*refused"):
        await collector.collect()
    with broker:
        async with asyncio.timeout(10):
            while True:
                try:
                    await collector.collect()
                    break
                except CollectorError:
                    pass
        await publish(broker, (TOPIC, encode(frame())))
        assert (await gather(collector, 1)).frames == [frame()]
        await collector.close()


async def test_a_retained_frame_is_old_and_left_out_while_a_retained_status_counts() -> None:
    status = (agent_topic("site", "pod0", "n000", "STATUS"), encode_status(Status("offline", "n000", {"n000": 1.0})))
    with Mosquitto() as broker:
        await publish(broker, (TOPIC, encode(frame())), status, retain=True)
        collector = subscriber(broker)
        before = await gather(collector, 1)
        await publish(broker, (TOPIC, encode(frame(5))))
        after = await gather(collector, 1)
        await collector.close()
    (offline,) = before.frames
    assert (offline.kind, offline.names, offline.columns["up"].tolist()) == ("source", ("n000",), [0.0])
    assert offline.time > NOW, "as of now, by our own clock"
    assert after.frames == [frame(5)]


async def test_bad_messages_are_counted_and_told_and_the_good_ones_come_through() -> None:
    with Mosquitto() as broker:
        async with listening(subscriber(broker)) as collector:
            bad = [(TOPIC, b"FTF1 cut"), (TOPIC, b'{"time": 1}'), (TOPIC + "/x\x1b[2J", b"\xff\xfe")]
            await publish(broker, *bad[:2], (TOPIC, encode(frame(3))))
            sample = await gather(collector, 1)
    assert sample.frames == [frame(3)]
    (warning,) = sample.warnings
    assert "2 parts of 3 messages could not be read" in warning and TOPIC in warning and "not a text frame" in warning


async def test_a_silent_topic_is_told_while_connected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collectors.mqtt.collector.QUIET_S", 0.0)
    with Mosquitto() as broker:
        async with listening(subscriber(broker, topic=["a/#", "b/#"])) as collector:
            warnings: list[str] = []
            async with asyncio.timeout(5):
                while not warnings:
                    warnings = list((await collector.collect()).warnings)
    assert warnings[0].startswith("connected, but nothing has come on a/#, b/# for")


def test_an_inbox_that_overflows_keeps_the_newest_and_counts_the_rest() -> None:
    inbox = Inbox(messages=3, size=100)
    for i in range(5):
        inbox.put(Message("t", b"%d" % i))
    assert ([m.payload for m in inbox.take()], inbox.dropped) == ([b"2", b"3", b"4"], 2)
    for i in range(3):
        inbox.put(Message("t", b"%d" % i * 60))
    assert ([m.payload[:1] for m in inbox.take()], inbox.dropped) == ([b"2"], 4)
    inbox.put(Message("t", b"x" * 500))
    assert len(inbox.take()) == 1, "one that is larger than all that fits is read all the same"


def test_mistakes_of_a_site_are_told_by_what_was_expected() -> None:
    port = free_port()
    with pytest.raises(InputError, match="expected a name without"):
        subscriber(port, share="a/b")
    with pytest.raises(InputError, match="the environment has no NO_SUCH_VARIABLE"):
        subscriber(port, password={"env": "NO_SUCH_VARIABLE"})
    with pytest.raises(InputError, match="no profile 'cpu'; shipped are ethtool"):
        subscriber(port, payload="influx", profile="cpu")


async def test_two_clients_of_one_name_are_told_that_they_take_each_others_place() -> None:
    with Mosquitto() as broker:
        first, second = (subscriber(broker, client_id="same", every="0.1s") for _ in range(2))
        async with listening(first), listening(second):
            with pytest.raises(CollectorError, match=r"connection was lost; .* another client our client_id"):
                async with asyncio.timeout(20):
                    while True:
                        await first.collect()
                        await second.collect()
