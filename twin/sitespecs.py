"""What a site file may say of each kind of collector: its options, their units and defaults.

A kind is a key of `KINDS`; the collectors build themselves from these. File names are relative to the site file.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from twin.errors import InputError
from twin.units import seconds
from twin.yamlfile import Strict

Duration = Annotated[float, BeforeValidator(seconds), Field(gt=0)]
Port = Annotated[int, Field(ge=1, le=65535)]


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Words = Annotated[list[str], BeforeValidator(_listed)]  # one word, or several


class Secret(Strict):
    """Where a password is kept: never in the site file, which is recorded and shared."""

    env: str | None = None
    file: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _one(cls, data: Any) -> Any:
        if not isinstance(data, dict) or len(data) != 1 or next(iter(data)) not in ("env", "file"):
            raise ValueError("expected where the secret is kept: {env: VARIABLE} or {file: PATH}")
        return data

    def value(self, directory: Path, where: str) -> str:
        """The secret itself. Raises InputError, in which `where` says what it is for."""
        if self.env is not None:
            found = os.environ.get(self.env)
            if found is None:
                raise InputError(f"{where}: the environment has no {self.env}")
            return found
        path = directory / str(self.file)
        try:
            return path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as problem:
            raise InputError(f"{where}: {path} cannot be read: {problem}") from problem


class TlsSpec(Strict):
    """ca: whom to believe. cert and key: who we are. server_name: where the name differs from the certificate's."""

    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    server_name: str | None = None
    insecure: bool = False


class HostSpec(Strict):
    """Network interfaces and InfiniBand devices of a host, from its /sys."""

    name: str | None = None
    sys: str = "/sys"
    every: Duration = 1.0
    devices: dict[str, str] = {}


class InfinibandSpec(Strict):
    """One InfiniBand fabric through infiniband-diags. env: environment of the tools."""

    plane: str | None = None
    every: Duration = 5.0
    discover_every: Duration = 60.0
    ca: str | None = None
    port: int | None = None
    timeout: Duration = 30.0
    env: dict[str, str] = {}


class NvmlSpec(Strict):
    """GPUs and NVLinks of a host through NVML. gpus: UUID or PCI address -> address, where order does not tell."""

    name: str | None = None
    every: Duration = 1.0
    deadline: Duration = 5.0
    gpus: dict[str, str] = {}


class GnmiSpec(Strict):
    """Switches by gNMI Subscribe. targets: switch of the wiring -> host:port.

    ports: switch (or `*`) -> interface -> port, `{"*": {Ethernet0: p1}}`, where names alone do not tell.
    every: the interval asked for. tls: absent for a plain connection.
    """

    targets: dict[str, str] = Field(min_length=1)
    username: str | None = None
    password: Secret | None = None
    tls: TlsSpec | None = None
    every: Duration = 1.0
    deadline: Duration = 10.0
    ports: dict[str, dict[str, str]] = {}


class SnmpSpec(Strict):
    """Switches by SNMP (IF-MIB). targets: switch of the wiring -> host or host:port. ports: as for gnmi.

    Version 2c needs a community, version 3 a user; auth and priv are {protocol, key}.
    """

    class Auth(Strict):
        protocol: Literal["md5", "sha", "sha224", "sha256", "sha384", "sha512"]
        key: Secret

    class Priv(Strict):
        protocol: Literal["des", "aes", "aes192", "aes256"]
        key: Secret

    targets: dict[str, str] = Field(min_length=1)
    version: Literal["2c", "3"] = "2c"
    community: Secret | None = None
    user: str | None = None
    auth: Auth | None = None
    priv: Priv | None = None
    every: Duration = 5.0
    deadline: Duration = 10.0
    ports: dict[str, dict[str, str]] = {}

    @model_validator(mode="before")
    @classmethod
    def _version(cls, data: Any) -> Any:
        if isinstance(data, dict) and "version" in data:
            data = {**data, "version": str(data["version"])}
        return data

    @model_validator(mode="after")
    def _credentials(self) -> SnmpSpec:
        if self.version == "3" and self.user is None:
            raise ValueError("version 3 needs a user")
        if self.priv is not None and self.auth is None:
            raise ValueError("priv needs auth as well")
        return self


class MetricsSpec(Strict):
    """What stores and exporters of Prometheus metrics have in common."""

    profile: Words = Field(min_length=1)
    username: str | None = None
    password: Secret | None = None
    token: Secret | None = None
    tls: TlsSpec | None = None
    names: dict[str, str] = {}
    ports: dict[str, dict[str, str]] = {}


class PrometheusSpec(MetricsSpec):
    """A Prometheus-compatible server. profile: names of shipped profiles, or files.

    selector: label matchers for every query, such as `cluster="a"`. names: entities as the store calls them to
    addresses, where they differ.
    """

    url: str
    selector: str = ""
    every: Duration = 5.0
    deadline: Duration = 10.0


class ExporterSpec(MetricsSpec):
    """Exporters, scraped directly. targets: node or switch of the wiring -> URL. profile: as for prometheus."""

    targets: dict[str, str] = Field(min_length=1)
    every: Duration = 1.0
    deadline: Duration = 5.0


class RedfishSpec(Strict):
    """Supplies and power of nodes and power shelves. targets: node, rack or feed (a shelf) of the wiring -> URL."""

    targets: dict[str, str] = Field(min_length=1)
    username: str | None = None
    password: Secret | None = None
    tls: TlsSpec | None = None
    every: Duration = 10.0
    deadline: Duration = 20.0


class MqttSpec(Strict):
    """A broker. topic: what to subscribe to. payload: whose messages; profile: mapping of telegraf's measurements.

    share: name of a shared subscription, where several monitors divide the work. port: 1883, with tls 8883.
    """

    host: str
    port: Port | None = None
    topic: Words = ["fabrictwin/v1/#"]
    payload: Literal["fabrictwin", "telegraf-json", "influx"] = "fabrictwin"
    profile: Words = []
    username: str | None = None
    password: Secret | None = None
    tls: TlsSpec | None = None
    version: Literal["5", "3.1.1"] = "5"
    client_id: str | None = None
    share: str | None = None
    names: dict[str, str] = {}
    ports: dict[str, dict[str, str]] = {}
    every: Duration = 1.0
    deadline: Duration = 10.0

    @model_validator(mode="before")
    @classmethod
    def _version(cls, data: Any) -> Any:
        if isinstance(data, dict) and "version" in data:
            data = {**data, "version": str(data["version"])}
        return data


Spec = (
    HostSpec | InfinibandSpec | NvmlSpec | GnmiSpec | SnmpSpec
    | PrometheusSpec | ExporterSpec | RedfishSpec | MqttSpec
)  # fmt: skip
KINDS: dict[str, type[Strict]] = {
    "host": HostSpec,
    "infiniband": InfinibandSpec,
    "nvml": NvmlSpec,
    "gnmi": GnmiSpec,
    "snmp": SnmpSpec,
    "prometheus": PrometheusSpec,
    "exporter": ExporterSpec,
    "redfish": RedfishSpec,
    "mqtt": MqttSpec,
}


class CollectorSpec(Strict):
    """One entry of `collectors`: a kind with its options."""

    host: HostSpec | None = None
    infiniband: InfinibandSpec | None = None
    nvml: NvmlSpec | None = None
    gnmi: GnmiSpec | None = None
    snmp: SnmpSpec | None = None
    prometheus: PrometheusSpec | None = None
    exporter: ExporterSpec | None = None
    redfish: RedfishSpec | None = None
    mqtt: MqttSpec | None = None

    @model_validator(mode="before")
    @classmethod
    def _one(cls, data: Any) -> Any:
        if not isinstance(data, dict) or len(data) != 1:
            raise ValueError(f"expected one collector with its options, such as {{host: {{}}}}, found {data!r}")
        kind = next(iter(data))
        if kind not in KINDS:
            raise ValueError(f"{kind!r} is not a collector of this version; it has {', '.join(KINDS)}")
        return {kind: data[kind] or {}}

    @property
    def spec(self) -> Spec:
        spec: Spec = next(s for kind in KINDS if (s := getattr(self, kind)) is not None)
        return spec


class AgentSpec(Strict):
    """What `fabrictwin agent` does on each host: where it publishes, as what, and what it reads.

    mqtt: the broker; without it the first `mqtt` of the site's collectors. collectors: without them this host's own.
    """

    mqtt: MqttSpec | None = None
    pod: str = "pod0"
    collectors: list[CollectorSpec] = []
