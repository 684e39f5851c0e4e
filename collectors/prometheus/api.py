"""The HTTP API of Prometheus and of those that speak it: Thanos, Mimir, VictoriaMetrics.

https://prometheus.io/docs/prometheus/latest/querying/api
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import msgspec
import numpy as np
import numpy.typing as npt

from collectors.base import CollectorError
from collectors.prometheus.http import Http, Reply
from twin.frames import NS

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

MOST_POINTS = 10_000  # of one series in one range query: Prometheus refuses more than 11,000
_NO_VALUES = len("[]")


class _Series(msgspec.Struct, gc=False):
    metric: msgspec.Raw
    values: msgspec.Raw = msgspec.Raw(b"[]")  # [[1700000000.123,"42"],…]; a histogram has none


class _Data(msgspec.Struct):
    result: list[_Series]


class _Answer(msgspec.Struct):
    data: _Data
    warnings: list[str] = []


class _Refusal(msgspec.Struct):
    kind: str = msgspec.field(name="errorType", default="")
    error: str = ""


_ANSWER = msgspec.json.Decoder(_Answer)
_REFUSAL = msgspec.json.Decoder(_Refusal)
_LABELS = msgspec.json.Decoder(dict[str, str])


@dataclass(frozen=True, slots=True)
class Matrix:
    """Samples of a number of series. keys: the labels of each as JSON, byte for byte as the server writes them.

    times: int64[n], ns, and values: float64[n] of all samples, series after series; counts: how many each has.
    """

    keys: list[bytes]
    counts: npt.NDArray[np.intp]
    times: I64
    values: F64
    warnings: list[str] = field(default_factory=list)

    def last(self) -> tuple[I64, F64]:
        """Time and value of the last sample of each series that has any: keys without one are not in a Matrix."""
        ends = np.cumsum(self.counts) - 1
        return self.times[ends], self.values[ends]


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of a range query. times: int64[t], ns; series: key -> float64[t], NaN where there is no value."""

    times: I64
    series: dict[bytes, F64]


def labels_of(key: bytes) -> tuple[str, dict[str, str]]:
    """The name and the labels of a key of a Matrix. Raises CollectorError where the values of labels are no texts."""
    try:
        labels = _LABELS.decode(key)
    except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
        raise CollectorError(f"not the labels of a series: {problem}") from problem
    return labels.pop("__name__", ""), labels


class Api:
    """Queries to one server. All raise CollectorError: what was refused or went wrong, and what to do."""

    def __init__(self, http: Http) -> None:
        self._http, self._base = http, http.url.rstrip("/")

    async def query(self, promql: str, time: float | None = None) -> Reply:
        """The answer to an instant query, to be read with `matrix`, in another thread where it is large."""
        form = {"query": promql} if time is None else {"query": promql, "time": repr(time)}
        return await self._http.post(f"{self._base}/api/v1/query", form)

    async def query_range(
        self, promql: str, start: float, end: float, step: float, points: int = 500
    ) -> AsyncIterator[Block]:
        """Blocks of at most `points` steps each, from start to end (seconds since the epoch), both included."""
        points = min(points, MOST_POINTS)
        steps = int((end - start) / step + 1e-9) + 1
        for first in range(0, steps, points):
            times = start + step * np.arange(first, min(first + points, steps), dtype=np.float64)
            form = {"query": promql, "start": f"{times[0]:.3f}", "end": f"{times[-1]:.3f}", "step": f"{step:.3f}"}
            found = self.matrix(await self._http.post(f"{self._base}/api/v1/query_range", form))
            yield _block(found, times)

    def matrix(self, reply: Reply) -> Matrix:
        """The series of an answer."""
        host = self._http.host
        if reply.status != 200 or not reply.content_type.endswith("json"):
            raise CollectorError(f"{host}: {_refusal(reply)}")
        try:
            answer = _ANSWER.decode(reply.body)
        except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
            raise CollectorError(f"{host}: not what the query API answers: {problem}") from problem
        series = [s for s in answer.data.result if len(s.values) > _NO_VALUES]
        try:
            counts, texts = _samples([s.values for s in series])
            times = _nanoseconds(_numbers(texts[::2]))
            values = np.fromiter(map(float, texts[1::2]), np.float64, len(times))
        except ValueError as problem:
            raise CollectorError(f"{host}: not what the query API answers: a time or value is no number") from problem
        return Matrix([bytes(s.metric) for s in series], counts, times, values, answer.warnings)


def _samples(values: list[msgspec.Raw]) -> tuple[npt.NDArray[np.intp], list[bytes]]:
    """How many samples each series has, and all times and values in turn, as text.

    In few steps over the whole text, and without objects that the garbage collector would have to look at: a hundred
    thousand lists of pairs make it look at all that the program has, more than once.
    """
    text = b",".join(values)
    if text.count(b"]") == 2 * len(values):  # the usual case: one sample each
        counts = np.ones(len(values), np.intp)
    else:
        counts = np.array([bytes(v).count(b"]") - 1 for v in values], np.intp)
    texts = text.translate(None, b'[]"').split(b",") if values else []
    whole = len(texts) == 2 * int(counts.sum()) and text.count(b"[") == text.count(b"]")
    if not whole or b"_" in text:  # Python reads 1_0 as a number
        raise ValueError
    return counts, texts


def _numbers(texts: list[bytes]) -> F64:
    """Times as numbers: each is shared by all series of a scrape."""
    known = {text: float(text) for text in set(texts)}
    return np.array([known[text] for text in texts], np.float64)


def _nanoseconds(seconds: F64) -> I64:
    """Milliseconds are all that the API has; the rest is rounding of a float64."""
    if not np.all((seconds > 0) & (seconds < 2.0**33)):
        raise ValueError("a time that is no seconds since the epoch")
    return np.rint(seconds * 1000).astype(np.int64) * (NS // 1000)


def _block(found: Matrix, times: F64) -> Block:
    grid = _nanoseconds(times)
    out = {}
    for key, end, count in zip(found.keys, np.cumsum(found.counts).tolist(), found.counts.tolist(), strict=True):
        values = np.full(len(grid), np.nan)
        here = found.times[end - count : end]
        at = np.searchsorted(grid, here)
        fits = (at < len(grid)) & (grid[np.minimum(at, len(grid) - 1)] == here)
        values[at[fits]] = found.values[end - count : end][fits]
        out[key] = values
    return Block(grid, out)


def _refusal(reply: Reply) -> str:
    """An answer that is none, in words."""
    try:
        said = _REFUSAL.decode(reply.body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        said = _Refusal()
    if said.error:
        text = re.sub(r"\s+", " ", said.error)[:200]
        hint = {
            "bad_data": "; check the selector in the site file",
            "timeout": "; narrow the selector, or raise `every`",
            "execution": "; narrow the selector, or ask less often",
        }.get(said.kind, "")
        return f"the query failed ({said.kind or f'HTTP {reply.status}'}): {text}{hint}"
    if reply.status == 404:
        return "it has no query API there (HTTP 404); the URL is that of the server, such as http://host:9090"
    if reply.status == 503:
        return "it is not ready or overloaded (HTTP 503); it is asked again"
    if reply.content_type == "text/html":
        return f"it answers with a web page (HTTP {reply.status}) instead of JSON; is a login page in front of it?"
    return f"it answers HTTP {reply.status} with {reply.content_type}, expected JSON of the query API"
