"""Real Prometheus and node_exporter on loopback ports, each in a directory of its own and under a time limit."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import yaml

LIMIT_S = 120


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Service:
    """A program that listens on a port of its own; `stop` and `start` in turn keep the port."""

    ready_path = "/"

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory, self.port = directory, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def command(self) -> list[str]:
        raise NotImplementedError

    def start(self) -> None:
        """Starts it and waits until it answers. Raises RuntimeError with its last words where it does not."""
        log = self.directory / "log"
        with log.open("wb") as out:
            command = ["timeout", "--kill-after=2", str(LIMIT_S), *self.command()]
            self._process = subprocess.Popen(command, cwd=self.directory, stdout=out, stderr=out)
        end = time.monotonic() + 15
        while time.monotonic() < end and self._process.poll() is None:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(self.url + self.ready_path, timeout=2).close()
                return
            time.sleep(0.03)
        self.stop()
        raise RuntimeError(f"{self.command()[0]} does not answer: {log.read_text()[-500:]}")

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            process.wait(timeout=10)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class NodeExporter(Service):
    """node_exporter that reads the tree of a /sys and nothing else."""

    ready_path = "/metrics"

    def __init__(
        self, directory: Path, sysfs: Path, collectors: tuple[str, ...] = ("infiniband", "netclass")
    ) -> None:
        super().__init__(directory)
        self._sysfs, self._collectors = sysfs, collectors

    def command(self) -> list[str]:
        return [
            "prometheus-node-exporter", f"--web.listen-address=127.0.0.1:{self.port}", f"--path.sysfs={self._sysfs}",
            "--collector.disable-defaults", *(f"--collector.{name}" for name in self._collectors),
        ]  # fmt: skip

    def page(self) -> str:
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=5) as answer:
            text: str = answer.read().decode()
            return text


class Prometheus(Service):
    """A store that scrapes `targets`: instance label -> exporter, every second."""

    ready_path = "/-/ready"

    def __init__(self, directory: Path, targets: Mapping[str, Service]) -> None:
        super().__init__(directory)
        static = [
            {"targets": [f"127.0.0.1:{exporter.port}"], "labels": {"instance": instance}}
            for instance, exporter in targets.items()
        ]
        config = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
            "scrape_configs": [{"job_name": "node", "static_configs": static}],
        }
        (directory / "prometheus.yml").write_text(yaml.safe_dump(config))

    def command(self) -> list[str]:
        return [
            "prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data",
            f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=warn",
        ]  # fmt: skip

    def ask(self, promql: str) -> list[Any]:
        """The result of an instant query, read by other means than the code under test."""
        query = urllib.parse.urlencode({"query": promql})
        with urllib.request.urlopen(f"{self.url}/api/v1/query?{query}", timeout=5) as answer:
            result: list[Any] = json.load(answer)["data"]["result"]
            return result

    def wait_for(self, promql: str, series: int = 1) -> None:
        """Waits until a query has at least so many series."""
        end = time.monotonic() + 20
        while len(self.ask(promql)) < series:
            if time.monotonic() > end:
                raise RuntimeError(f"{promql} does not come")
            time.sleep(0.1)
