"""Answers of the query API, right and wrong."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.base import Collector, CollectorError
from collectors.prometheus import query, scrape
from collectors.prometheus.api import Api, labels_of
from collectors.prometheus.http import Http, Reply
from tests.collectors.prometheus_parts import exporter, response, server, site, store, values
from twin.errors import InputError, MissingLibrary
from twin.sitespecs import ExporterSpec, PrometheusSpec, Secret, TlsSpec


def api() -> Api:
    return Api(Http("http://prom:9090", PrometheusSpec(url="", profile=["gnmic"]), Path(), "test"))


def matrix(result: list[Any], **more: Any) -> bytes:
    data = {"resultType": "matrix", "result": result}
    return json.dumps({"status": "success", "data": data, **more}).encode()


def reply(body: bytes, status: int = 200, content_type: str = "application/json") -> Reply:
    return Reply(status, content_type, body)


NUMBERS = st.one_of(st.floats().map(repr), st.sampled_from(["NaN", "+Inf", "-Inf", "1e+06", "42"]))
SAMPLES = st.lists(st.tuples(st.integers(1, 2**42).map(lambda ms: ms / 1000), NUMBERS), max_size=4)
SERIES = st.lists(
    st.tuples(st.dictionaries(st.text(max_size=5), st.text(max_size=8), max_size=4), SAMPLES), max_size=6
)


@given(SERIES)
@settings(deadline=None)
def test_times_and_values_are_those_of_the_answer(series: list[Any]) -> None:
    body = matrix([{"metric": labels, "values": samples} for labels, samples in series])
    found = api().matrix(reply(body))
    kept = [(labels, samples) for labels, samples in series if samples]
    assert [json.loads(key) for key in found.keys] == [labels for labels, _ in kept]
    assert found.counts.tolist() == [len(samples) for _, samples in kept]
    assert found.times.tolist() == [round(t * 1000) * 10**6 for _, samples in kept for t, _ in samples]
    assert [repr(v) for v in found.values.tolist()] == [repr(float(v)) for _, s in kept for _, v in s]
    assert [repr(v) for v in found.last()[1].tolist()] == [repr(float(s[-1][1])) for _, s in kept]


@given(SERIES, st.data())
@settings(deadline=None)
def test_a_damaged_answer_is_an_error_or_says_the_same_to_the_standard_library(series: Any, data: Any) -> None:
    body = bytearray(matrix([{"metric": labels, "values": samples} for labels, samples in series]))
    for at in data.draw(st.lists(st.integers(0, len(body) - 1), min_size=1, max_size=3)):
        body[at : at + 1] = data.draw(st.binary(max_size=2))
    try:
        found = api().matrix(reply(bytes(body)))
    except CollectorError as problem:
        assert "\n" not in str(problem)
        return
    result = json.loads(body.decode("utf-8", "replace"), strict=False)["data"]["result"]
    said = [float(v) for s in result for _, v in s.get("values", [])]
    assert [repr(v) for v in found.values.tolist()] == [repr(v) for v in said]


def test_a_key_gives_name_and_labels() -> None:
    assert labels_of(b'{"__name__":"up","a":"\\u0062"}') == ("up", {"a": "b"})
    with pytest.raises(CollectorError):
        labels_of(b'{"a":1}')


def test_a_histogram_beside_counters_is_left_out() -> None:
    found = api().matrix(
        reply(
            matrix(
                [{"metric": {}, "histograms": [[1, {"count": "1"}]]}, {"metric": {"a": "b"}, "values": [[5, "7"]]}]
            )
        )
    )
    assert (found.keys, found.values.tolist()) == ([b'{"a": "b"}'], [7])


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (
            reply(b'{"status":"error","errorType":"bad_data","error":"parse error:\\n unexpected {"}', 400),
            "prom:9090: the query failed (bad_data): parse error: unexpected {; check the selector in the site file",
        ),
        (reply(b'{"status":"error","errorType":"execution","error":"too many samples"}', 422), "narrow the selector"),
        (reply(b'{"status":"error","errorType":"timeout","error":"query timed out"}', 503), "(timeout)"),
        (reply(b"Service Unavailable", 503, "text/plain"), "not ready or overloaded (HTTP 503)"),
        (reply(b"404 page not found", 404, "text/plain"), "the URL is that of the server, such as http://host:9090"),
        (reply(b"<html>login</html>", 200, "text/html"), "a web page (HTTP 200) instead of JSON; is a login page"),
        (reply(b'{"status":"success","da', 200), "not what the query API answers"),
        (reply(b'{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1,"x"]]}]}}'),
         "a time or value is no number"),
    ],
)  # fmt: skip
def test_what_a_server_refuses_is_one_line_with_what_to_do(answer: Reply, says: str) -> None:
    with pytest.raises(CollectorError) as problem:
        api().matrix(answer)
    assert says in str(problem.value) and "\n" not in str(problem.value)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (
            response("302 Found", "text/html", "", "Location: https://sso/login"),
            "it redirects to https://sso/login: give",
        ),
        (
            response("401 Unauthorized", "text/plain", ""),
            "access refused (HTTP 401); check username, password or token",
        ),
        (response("500 Oops", "text/plain", ""), "HTTP 500"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort", "the answer broke off"),
        (b"nonsense\r\n\r\n", "the answer broke off"),
        (None, "no answer within 0.45 s"),
    ],
)
async def test_a_server_that_errs_is_told_by_both_collectors(answer: bytes | None, says: str) -> None:
    async with server(answer) as url:
        for collector in (store(url, "gnmic", deadline="0.5s"), exporter_at(url)):
            with pytest.raises(CollectorError) as problem:
                await collector.collect()
            await collector.close()
            assert says in str(problem.value) and "\n" not in str(problem.value)


async def test_a_server_that_is_not_there_cannot_be_reached() -> None:
    async with server(None) as url:
        pass
    with pytest.raises(CollectorError, match="cannot be reached: Connect"):
        await store(url, "gnmic").collect()


def exporter_at(url: str) -> Collector:
    (collector,) = scrape.build(ExporterSpec(targets={"n0": url}, profile=["gnmic"], deadline=0.5), site())
    return collector


async def test_credentials_go_with_every_request(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        seen.extend(line for line in head.split("\r\n") if line.startswith(("Authorization", "POST")))
        writer.write(response("200 OK", "application/json", matrix([])))
        writer.close()

    monkeypatch.setenv("PROM_PASSWORD", "s3cret")
    (tmp_path / "token").write_text("t0ken\n")
    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/prom/"
    basic = PrometheusSpec(url=url, profile=["gnmic"], username="u", password=Secret(env="PROM_PASSWORD"))
    bearer = PrometheusSpec(url=url, profile=["gnmic"], token=Secret(file="token"))
    for spec in (basic, bearer):
        (collector,) = query.build(spec, site(tmp_path))
        assert (await collector.collect()).warnings
        await collector.close()
    listening.close()
    assert seen == [
        "POST /prom/api/v1/query HTTP/1.1", "Authorization: Basic dTpzM2NyZXQ=",
        "POST /prom/api/v1/query HTTP/1.1", "Authorization: Bearer t0ken",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"url": "prom:9090"}, "'prom:9090': expected a URL such as http://host:9090"),
        ({"url": "http://me:pw@prom"}, "a URL with a password in it"),
        ({"url": "http://prom", "token": Secret(env="NO_SUCH")}, "token: the environment has no NO_SUCH"),
        ({"url": "https://prom", "tls": TlsSpec(ca="none.pem")}, "tls: a certificate or key cannot be used"),
        ({"url": "http://prom", "names": {"x": "n7"}}, "names: 'x': 'n7' is neither a node or switch nor"),
    ],
)
def test_a_mistake_of_the_site_is_refused_at_once(spec: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError) as problem:
        query.build(PrometheusSpec(profile=["gnmic"], **spec), site())
    assert says in str(problem.value) and "\n" not in str(problem.value)


def test_a_target_that_the_wiring_lacks_is_refused() -> None:
    with pytest.raises(InputError, match="'n9' is neither a node nor a switch of the wiring of mini"):
        exporter("gnmic", target="n9")


def test_without_aiohttp_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    with pytest.raises(MissingLibrary, match=r"fabrictwin\[prometheus\]"):
        store("http://prom", "gnmic")


def answer_at(seconds: float, hosts: Mapping[str, float]) -> Reply:
    labels = {"__name__": "DCGM_FI_DEV_GPU_TEMP", "gpu": "0"}
    result = [{"metric": {**labels, "Hostname": h}, "values": [[seconds - age, "40"]]} for h, age in hosts.items()]
    return reply(matrix(result))


def test_a_sample_that_was_given_is_not_given_again_and_an_exporter_that_died_gives_nothing() -> None:
    collector = store("http://prom", "dcgm-exporter")
    told = []
    for seconds, hosts in ((100.0, {"n0": 1, "n1": 2}), (105.0, {"n0": 6, "n1": 2}), (110.0, {"n1": 2}), (115.0, {})):
        frames = [f for f in collector._read(answer_at(seconds, hosts)).frames if f.kind == "gpu"]
        told.append([(f.source, f.time / 1e9, f.names) for f in frames])
    assert told == [
        [("n0:dcgm-exporter", 99, ("n0/gpu0",)), ("n1:dcgm-exporter", 98, ("n1/gpu0",))],
        [("n1:dcgm-exporter", 103, ("n1/gpu0",))],
        [("n1:dcgm-exporter", 108, ("n1/gpu0",))],
        [],
    ]


def test_how_often_each_exporter_is_scraped_is_learnt_and_told() -> None:
    collector = store("http://prom", "dcgm-exporter")
    told = []
    for seconds in (100.0, 115.0, 130.0):
        frames = collector._read(answer_at(seconds, {"n0": 0})).frames
        said = [f for f in frames if f.kind == "source"]
        told += [dict(zip(f.names, f.columns["interval_seconds"].tolist(), strict=True)) for f in said]
    assert told == [{"n0:dcgm-exporter": 60}, {"n0:dcgm-exporter": 15}]


def test_a_gpu_whose_labels_changed_is_read_from_the_newer_series() -> None:
    """A new job on a GPU makes new series; those of the old one may still be in the window."""
    collector = store("http://prom", "dcgm-exporter")
    labels = {"__name__": "DCGM_FI_DEV_GPU_TEMP", "gpu": "0", "Hostname": "n0"}
    old, new = ({**labels, "pod": "a"}, [[100, "40"]]), ({**labels, "pod": "b"}, [[115, "50"]])
    for series in ([old, new], [new, old]):
        body = matrix([{"metric": m, "values": v} for m, v in series])
        collector._known.forget()
        assert values(collector._read(reply(body)))["n0/gpu0"] == {"temperature_celsius": 50}


def test_warnings_of_the_server_are_handed_on() -> None:
    sample = store("http://prom", "gnmic")._read(reply(matrix([], warnings=["one store is away"])))
    assert "prom: one store is away" in sample.warnings
