"""A real browser without a window, spoken to by the DevTools protocol on loopback."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import subprocess
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import ClientSession, ClientWebSocketResponse

LIMIT_S = 60
PROGRAM = "chromium-headless-shell"


@dataclass
class Page:
    """One page. complaints: what its console and the browser said of it; asked: URLs that it wanted."""

    socket: ClientWebSocketResponse
    session: str = ""
    complaints: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    _number: int = 0

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """What a method gives. Events that come in meanwhile are noted."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        await self.socket.send_json(message)
        while True:
            answer = await self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    async def show(self, path: Path, width: int, height: int = 900) -> None:
        """Opens a file in a window of a given size and waits until it is loaded."""
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )
        for part in ("Runtime", "Log", "Network", "Page"):
            await self.call(f"{part}.enable")
        await self.call("Page.navigate", url=path.as_uri())
        while await self.evaluate("document.readyState") != "complete":
            await asyncio.sleep(0.02)

    async def evaluate(self, expression: str) -> Any:
        found = await self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return found["result"].get("value")

    async def picture(self, path: Path) -> None:
        """All of the page, as PNG."""
        found = await self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(found["data"]))

    async def _next(self) -> dict[str, Any]:
        event: dict[str, Any] = await self.socket.receive_json(timeout=20)
        said = event.get("params", {})
        if event.get("method") in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            self.complaints.append(str(said))
        if event.get("method") == "Network.requestWillBeSent":
            self.asked.append(said["request"]["url"])
        return event


@contextlib.asynccontextmanager
async def browser() -> AsyncIterator[Page]:
    """A page of a browser of its own, with a profile of its own."""
    with tempfile.TemporaryDirectory() as profile:
        process = subprocess.Popen(
            [
                "timeout", "--kill-after=2", str(LIMIT_S), PROGRAM, "--no-sandbox", "--disable-gpu",
                "--remote-debugging-port=0", f"--user-data-dir={profile}", "about:blank",
            ],
            stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        try:
            assert process.stderr is not None
            line = next(line for line in process.stderr if line.startswith("DevTools listening on "))
            async with ClientSession() as http, http.ws_connect(line.split()[-1], max_msg_size=0) as socket:
                page = Page(socket)
                target = await page.call("Target.createTarget", url="about:blank")
                found = await page.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
                page.session = found["sessionId"]
                yield page
        finally:
            process.terminate()
            process.communicate(timeout=10)  # to the end of what all its processes say: one may yet write its profile
