"""A trace that may be shown to others: every name is another one, consistently, and what is not needed is left out.

The readings stay as they are, so that the same incidents are found with other names. Of the site file only the
thresholds, the announced work and the power remain: hosts, users, secrets and file names are nobody's business.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from replay.naming import Naming
from replay.records import Note, Record, Said
from replay.trace import Trace, open_trace
from replay.writing import Progress, Written, everything, rewrite
from twin.frames import Frame
from twin.incident import incident_id
from twin.topology.explicit import to_wiring
from twin.topology.model import Topology
from twin.topology.wiring import read_wiring
from twin.yamlfile import Document

_WORDS = ("acknowledged", "silenced", "maintenance")  # what people say of an incident
_KEPT_OF_SITE = ("rules", "power")  # numbers alone
# what a remark may hold besides names of the wiring; one pattern a kind, and what stands for it
_PRIVATE: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b[a-z][a-z0-9+.-]*://\S+", re.I), "[url]"),
    (re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)*"), "[mail]"),
    (
        re.compile(
            r"\b(pass(?:word|wd|phrase)?|secret|token|api[-_ ]?key|community|bearer|credentials?)\b"
            r"(?:\s+is\b)?\s*[:=]?\s*\S+",
            re.I,
        ),
        r"\1 [removed]",
    ),
    (re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.I), "[id]"),
    (re.compile(r"\b0x[0-9a-f]{8,}\b", re.I), "[id]"),
    (re.compile(r"\b(?:[0-9a-f]{2}[:-]){5,}[0-9a-f]{2}\b", re.I), "[id]"),
    (re.compile(r"\b(?:[0-9a-f]{4}:){3}[0-9a-f]{4}\b", re.I), "[id]"),
    (re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b"), "[ip]"),
    (
        re.compile(r"(?<![\w:])(?:[0-9a-f]{0,4}:){4,7}[0-9a-f]{0,4}(?![\w:])|\b[0-9a-f]{1,4}::[0-9a-f:]*", re.I),
        "[ip]",
    ),
    (re.compile(r"\b(?:[a-z0-9-]+\.)+[a-z]{2,}\b", re.I), "[host]"),
    (re.compile(r"(?<![\w.])/(?:[\w.-]+/)+[\w.-]*"), "[path]"),
    (re.compile(r"\b(?=\w*\d)(?=\w*[A-Za-z])\w{20,}\b"), "[removed]"),
)


@dataclass(slots=True)
class Anonymized(Written):
    """names: old -> new, for those who keep the original."""

    names: Mapping[str, str] | None = None


def anonymize(
    source: str | os.PathLike[str], target: str | os.PathLike[str], *,
    topology: Topology | None = None, notes: bool = True, progress: Progress | None = None,
) -> Anonymized:  # fmt: skip
    """Writes the trace at `source` to `target` under other names. Reads it twice.

    topology: of a text trace. notes: keep remarks, with names, addresses and secrets replaced; free text may yet say
    something, so that a person should read them. Raises InputError as `convert` does.
    """
    trace = open_trace(source, topology=topology)
    wiring = to_wiring(trace.topology)
    naming = Naming(wiring, *_survey(trace))
    hidden = Hidden(naming, trace)
    fresh = read_wiring(Document("the anonymised wiring", _text(hidden.wiring(wiring))))
    records = (hidden.record(r) for r in everything(trace) if notes or not isinstance(r, Note))
    done = rewrite([trace], target, records, lambda: fresh, hidden.site(trace.site), progress=progress)
    problems = [hidden.text(problem) for problem in done.problems]
    return Anonymized(done.frames, done.notes, done.bytes, done.truncated, problems, naming.names)


def _survey(trace: Trace) -> tuple[set[str], set[str]]:
    """First parts of addresses, and sources, that frames name."""
    known, heads, sources, seen = set(trace.topology.planes), set[str](), set[str](), set[tuple[str, ...]]()
    for frame in trace.frames():
        sources.add(frame.source)
        if frame.names not in seen:
            seen.add(frame.names)
            if frame.kind == "source":
                sources.update(frame.names)
            else:
                heads.update(end.split("/")[0] for name in frame.names for end in _ends(frame.kind, name))
    return heads - known, sources


def _ends(kind: str, name: str) -> list[str]:
    return name.split("--") if kind == "link" else [name]


class Hidden:
    """Everything that a trace holds, under the names of a Naming."""

    def __init__(self, naming: Naming, trace: Trace) -> None:
        self._naming = naming
        self._names: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._people: dict[str, str] = {}
        self._ids: dict[str, str] = {}
        self._replace: Callable[[str], str] | None = None
        for note in trace.notes:
            self._person(note.author)
        for said in trace.tally.said:
            old = said.incident
            self._ids[str(old.get("id"))] = _id(old, self.text(str(old.get("cause", ""))))
            for word in _WORDS:
                if isinstance(old.get(word), dict):
                    self._person(str(old[word].get("by", "")))

    def record(self, record: Record) -> Record:
        """The same record under other names."""
        if isinstance(record, Frame):
            names = self._names.get(record.names)
            if names is None:
                names = self._names[record.names] = tuple(map(self._naming.address, record.names))
            return Frame(record.time, self._naming.sources[record.source], record.kind, names, record.columns)
        if isinstance(record, Note):
            return Note(record.time, self.remark(record.text), self._person(record.author))
        return Said(record.time, record.what, self._incident(record.incident))

    def text(self, text: str) -> str:
        """A text of ours, in which only names are private."""
        if self._replace is None:
            self._replace = self._naming.replacer()
        return self._replace(text)

    def remark(self, text: str) -> str:
        """A text of people, who write more than names."""
        for pattern, instead in _PRIVATE:
            text = pattern.sub(instead, text)
        for name, instead in self._people.items():
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", instead, text, flags=re.IGNORECASE)
        return self.text(text)

    def _person(self, name: str) -> str:
        if not name or name == "maintenance":
            return name
        return self._people.setdefault(name, f"operator-{len(self._people) + 1}")

    def _incident(self, old: dict[str, Any]) -> dict[str, Any]:
        new: dict[str, Any] = self._value(old)
        new["id"] = self._ids.get(str(old.get("id")), "")
        if old.get("superseded_by"):
            new["superseded_by"] = self._ids.get(str(old["superseded_by"]), "")
        for word in _WORDS:
            said = old.get(word)
            if isinstance(said, dict):
                new[word] = {k: v for k, v in said.items() if k in ("at", "until")}
                new[word]["by"] = self._person(str(said.get("by", "")))
                if said.get("why"):
                    new[word]["why"] = self.remark(str(said["why"]))
        return new

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {key: self._value(part) for key, part in value.items()}
        return [self._value(part) for part in value] if isinstance(value, list) else value

    # --- wiring and site ---

    def wiring(self, old: Mapping[str, Any]) -> dict[str, Any]:
        """An explicit wiring under the new names. What an importer called things before is left out."""
        at, name = self._naming.address, self._name
        out = {key: value for key, value in old.items() if key in ("ranges", "site_watts")}
        out |= {"name": "fabric", "planes": [name(plane) for plane in old["planes"]]}
        out["nodes"] = [
            _without(n, name=name(n["name"]), rack=n.get("rack") and name(n["rack"])) for n in old["nodes"]
        ]
        out["switches"] = [
            _without(s, name=name(s["name"]), plane=s.get("plane") and name(s["plane"])) for s in old["switches"]
        ]
        out["links"] = [{**link, "a": at(link["a"]), "b": at(link["b"])} for link in old["links"]]
        out["domains"] = [
            {**d, "name": name(d["name"])} | {part: list(map(at, d[part])) for part in ("gpus", "switches")}
            for d in old["domains"]
        ]
        out["racks"] = [
            {**r, "name": name(r["name"]), "feeds": [{**f, "name": at(f["name"])} for f in r["feeds"]]}
            for r in old["racks"]
        ]  # fmt: skip
        if "jobs" in old:
            out["jobs"] = [
                {**j, "name": name(j["name"]), "nodes": [name(n) for n in j["nodes"]]} for j in old["jobs"]
            ]
        return out

    def site(self, old: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """What of a site file others need to judge the trace alike."""
        if old is None:
            return None
        out: dict[str, Any] = {"name": "fabric"} | {key: old[key] for key in _KEPT_OF_SITE if key in old}
        work = [w for w in old.get("maintenance") or () if isinstance(w, Mapping)]
        if work:
            out["maintenance"] = [
                {**{k: w[k] for k in ("from", "until") if k in w}, "what": self._naming.address(str(w.get("what")))}
                | ({"why": self.remark(str(w["why"]))} if w.get("why") else {})
                for w in work
            ]  # fmt: skip
        return out

    def _name(self, old: str) -> str:
        return self._naming.names.get(old, old)


def _id(incident: Mapping[str, Any], cause: str) -> str:
    """The id that the incident has under its new cause."""
    return incident_id(str(incident.get("kind")), cause, round(float(incident.get("detected", 0)) * 1e6) * 1000)


def _without(thing: Mapping[str, Any], **changed: Any) -> dict[str, Any]:
    new = {**thing, **changed}
    return {key: value for key, value in new.items() if value is not None and key != "label"}


def _text(wiring: Mapping[str, Any]) -> str:
    return msgspec.json.encode(wiring).decode()  # JSON is YAML
