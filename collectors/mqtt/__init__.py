"""MQTT, both ways: frames and Telegraf's metrics from a broker, and an agent's frames to one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collectors.base import Collector
from twin.errors import InputError

if TYPE_CHECKING:
    from collectors.mqtt.payload import Reader
    from twin.site import Site
    from twin.sitespecs import MqttSpec


def build(spec: MqttSpec, site: Site) -> list[Collector]:
    """The subscriber of one broker. Raises InputError where a file of it cannot be used."""
    from collectors.mqtt.collector import MqttCollector
    from collectors.mqtt.connection import Broker

    name = _name(spec, site)
    collector = MqttCollector(
        Broker.of(spec, site.directory), _topics(spec), _reader(spec, site, name), name=name,
        client_id=spec.client_id, interval=spec.every, deadline=spec.deadline,
    )  # fmt: skip
    return [collector]


def _name(spec: MqttSpec, site: Site) -> str:
    """`mqtt:HOST`; with the topics too where the site has several entries for one host."""
    from twin.sitespecs import MqttSpec

    same = [s for s in site.collectors if isinstance(s, MqttSpec) and s.host == spec.host]
    return f"mqtt:{spec.host}" if len(same) < 2 else f"mqtt:{spec.host}:{','.join(spec.topic)}"


def _topics(spec: MqttSpec) -> list[str]:
    """What to subscribe to. Of a shared subscription each monitor gets a part, but all need to know who is online."""
    from collectors.mqtt.status import status_filter

    if any(not t or "\0" in t for t in spec.topic) or not spec.topic:
        raise InputError("collectors: mqtt: topic: expected one or more topics, such as fabrictwin/v1/#")
    if spec.share is None:
        return list(spec.topic)
    if not spec.share or set(spec.share) & set("/+#"):
        raise InputError(f"collectors: mqtt: share {spec.share!r}: expected a name without /, + and #")
    statuses = [f for t in spec.topic if spec.payload == "fabrictwin" and (f := status_filter(t))]
    return [*(f"$share/{spec.share}/{topic}" for topic in spec.topic), *statuses]


def _reader(spec: MqttSpec, site: Site, name: str) -> Reader:
    if spec.payload == "fabrictwin":
        from collectors.mqtt.payload import FrameReader

        return FrameReader(name)
    from collectors.mqtt.mapping import RecordReader
    from collectors.mqtt.profile import load_profiles
    from collectors.portnames import PortNames

    if spec.payload == "influx":
        from collectors.mqtt.lineprotocol import parse
    else:
        from collectors.mqtt.telegraf import parse
    profiles = load_profiles(spec.profile, site.directory)
    return RecordReader(parse, profiles, PortNames(site.topology, spec.ports), site.topology, spec.names)
