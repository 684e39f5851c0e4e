"""The sources of a site, one by one: built, collected twice under their deadline, and judged."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from collectors.base import Clock, Collector
from collectors.build import build
from collectors.call import Call, collected, one_line
from collectors.doctor.check import Coverage, SourceReport, SourceState
from collectors.doctor.coverage import Bool, Seen, covered
from collectors.doctor.scope import is_meant, scope
from collectors.skew import Skew
from twin.errors import FabrictwinError, InputError
from twin.frames import NS
from twin.site import Site
from twin.sitespecs import KINDS

TIMES = 2  # what is only known after a while, or every second time, shows then
PATIENT_TIMES = 6  # for a source that has given nothing yet: a broker or a subscription sends when it likes
LONGEST_PAUSE_S = 2.0
GRACE_S = 1.0
AT_ONCE = 64

Progress = Callable[[int, int], None]  # sources done, sources in all


@dataclass(slots=True)
class Attempt:
    """What trying one source gave. error: of the last collection, None where that went well."""

    entry: str
    spec: Any
    name: str
    collector: Collector | None
    seen: Seen
    error: str | None = None
    failures: int = 0
    answers: int = 0
    duration: float | None = None
    age: float | None = None
    warnings: Sequence[str] = ()
    lacking: Sequence[str] = ()
    skew: Skew = field(default_factory=Skew)

    def reads(self, kind: str) -> Bool:
        return self.seen.read(kind)


async def examine(
    site: Site, told: Progress = lambda done, of: None, *, clock: Clock = time.time_ns
) -> tuple[list[SourceReport], list[Seen]]:
    """A report a source, in the order of the site file, and what each has read; what a source raises is in it."""
    attempts = [attempt for spec in site.collectors for attempt in _built(spec, site)]
    _refuse_twins(attempts)
    slots, done = asyncio.Semaphore(AT_ONCE), 0

    async def run(attempt: Attempt) -> None:
        nonlocal done
        async with slots:
            await collect(attempt, clock)
        done += 1
        told(done, len(attempts))

    told(0, len(attempts))
    await asyncio.gather(*(run(a) for a in attempts))
    return [_report(a, attempts, site) for a in attempts], [a.seen for a in attempts]


def _built(spec: Any, site: Site) -> list[Attempt]:
    """The collectors of one entry of the site file, or why there are none."""
    entry = next(kind for kind, of in KINDS.items() if of is type(spec))
    try:
        collectors = build(site, [spec])
    except (FabrictwinError, ImportError) as problem:
        text = "; ".join(problem.problems) if isinstance(problem, InputError) else one_line(problem)
        return [Attempt(entry, spec, entry, None, Seen(site.topology), text)]
    return [Attempt(entry, spec, c.name, c, Seen(site.topology)) for c in collectors]


def _refuse_twins(attempts: list[Attempt]) -> None:
    """Marks each source whose name an earlier one has: together they could not be watched."""
    names: set[str] = set()
    for attempt in attempts:
        if attempt.collector is not None and attempt.name in names:
            attempt.collector = None
            attempt.error = f"another source is called {attempt.name!r}: give one of them another name or plane"
        names.add(attempt.name)


async def collect(attempt: Attempt, clock: Clock = time.time_ns) -> None:
    """Collects until there is enough to judge; a source that hangs is asked once."""
    collector = attempt.collector
    if collector is None:
        return
    for number in range(PATIENT_TIMES):
        if number >= TIMES and (attempt.seen.kinds() or not attempt.answers):
            break
        if number:
            await asyncio.sleep(min(collector.interval, LONGEST_PAUSE_S))
        if not await _once(attempt, collector, clock):
            break
    attempt.lacking = _lacking(collector)
    closing = Call(collector.close())
    if not await closing.wait(GRACE_S):
        await closing.end(GRACE_S)


def _lacking(collector: Collector) -> list[str]:
    """What a collector that tells its capabilities (NVML) does not get: `not supported at 8 of 8: pcie_tx_bytes`."""
    told: list[Any] = getattr(collector, "capabilities", list)()
    every: Counter[str] = Counter(c.metric for c in told)
    why = Counter((c.metric, c.reason or "not there") for c in told if c.source is None)
    alike: dict[str, list[str]] = {}
    for (metric, reason), n in why.items():
        alike.setdefault(f"{reason} at {n} of {every[metric]}", []).append(metric)
    return [f"{what}: {', '.join(metrics)}" for what, metrics in alike.items()]


async def _once(attempt: Attempt, collector: Collector, clock: Clock) -> bool:
    """One collection. False where it hangs: asking again would only take as long again."""
    began, since = time.monotonic(), clock()
    call = Call(collected(collector))
    if not await call.wait(collector.deadline):
        await call.end(GRACE_S)
        before = f" (before that: {attempt.error})" if attempt.error else ""
        attempt.error = f"no answer within its deadline of {collector.deadline:g} s{before}"
        attempt.failures += 1
        return False
    attempt.duration = time.monotonic() - began
    try:
        sample = call.result()
    except Exception as problem:
        attempt.error = one_line(problem)
        attempt.failures += 1
        return True
    now = clock()
    attempt.error, attempt.warnings = None, sample.warnings
    attempt.answers += 1
    attempt.seen.take(sample.frames)
    attempt.skew.note(sample.frames, since - round(collector.interval * NS), now)
    if sample.frames:
        attempt.age = max(0.0, (now - max(f.time for f in sample.frames)) / NS)
    return True


def _report(attempt: Attempt, attempts: list[Attempt], site: Site) -> SourceReport:
    if attempt.collector is None:
        return SourceReport(attempt.name, attempt.entry, "failed", attempt.error)
    collector, seen, rules = attempt.collector, attempt.seen, site.rules
    kinds = seen.kinds()
    metrics = {kind: seen.metrics(kind) for kind in kinds}
    coverage = _coverage(attempt, attempts, site)
    offsets = attempt.skew.seconds().values()
    offset = max(offsets, key=abs, default=None)
    late = bool(attempt.answers) and attempt.duration is not None and attempt.duration > collector.interval
    old = attempt.age is not None and attempt.age > collector.interval + rules.late
    skewed = offset is not None and abs(offset) > rules.clock_offset
    short = any(c.short for c in coverage)
    state: SourceState = "ok"
    if not kinds:
        state = "failed"
    elif attempt.failures or attempt.warnings or short or late or old or skewed:
        state = "part"
    return SourceReport(
        name=attempt.name,
        entry=attempt.entry,
        state=state,
        error=attempt.error or (None if kinds else _nothing(attempt)),
        coverage=coverage,
        read={kind: some for kind, (some, _, _) in metrics.items()},
        never={kind: never for kind, (_, never, _) in metrics.items()},
        partly=tuple(p for _, _, partly in metrics.values() for p in partly),
        strangers=len(seen.strangers),
        warnings=tuple(attempt.warnings),
        lacking=tuple(attempt.lacking),
        duration_seconds=attempt.duration,
        interval_seconds=collector.interval,
        deadline_seconds=collector.deadline,
        age_seconds=attempt.age,
        clock_offset_seconds=offset,
        advice=tuple(_advice(attempt, coverage, late=late, old=old, offset=offset if skewed else None)),
    )


def _nothing(attempt: Attempt) -> str:
    if attempt.seen.strangers:
        some = ", ".join(list(attempt.seen.strangers)[:3])
        return f"it answers, but none of its {len(attempt.seen.strangers)} names is in the wiring: {some}"
    return f"it answers, but gave nothing in {attempt.answers} collections"


def _coverage(attempt: Attempt, attempts: list[Attempt], site: Site) -> tuple[Coverage, ...]:
    """Of an entry with several sources each should read what no other of them reads."""
    topo = site.topology
    others = [a for a in attempts if a.spec is attempt.spec and a is not attempt]
    out = []
    for kind, expected in scope(attempt.entry, attempt.spec, attempt.name, site).items():
        read = attempt.reads(kind)
        if not read.any() and not is_meant(attempt.entry):
            continue
        due = np.ones(len(read), bool) if expected is None else expected
        for other in others:
            due = due & (read | ~other.reads(kind))
        if due.any():
            out.append(covered(kind, read, due, topo, meant=expected is not None))
    return tuple(out)


def _advice(
    attempt: Attempt, coverage: Sequence[Coverage], *, late: bool, old: bool, offset: float | None
) -> list[str]:
    out = []
    collector = attempt.collector
    if collector is not None and attempt.error and attempt.error.startswith("no answer within"):
        out.append("See whether it can be reached from here; a slow one needs a longer `deadline` in the site file.")
    elif attempt.failures and not attempt.error:
        out.append(
            f"{attempt.failures} of {attempt.failures + attempt.answers} collections failed, the last went well."
        )
    if late and collector is not None and attempt.duration is not None:
        every = max(1, round(attempt.duration * 1.5))
        out.append(
            f"A sample takes {attempt.duration:.2g} s, longer than its interval of {collector.interval:g} s: "
            f"say `every: {every}s`."
        )
    if offset is not None:
        way = "ahead of" if offset > 0 else "behind"
        less = ", or its readings are that late" if offset < 0 else ""
        out.append(f"Its clock is {abs(offset):.1f} s {way} ours{less}: see to NTP there (and here).")
    elif old and attempt.age is not None:
        out.append(f"Its newest reading is {attempt.age:.0f} s old when it comes: what it says is of the past.")
    out += [
        f"{c.expected - c.read:,} of {c.expected:,} {c.kind}s are not read, such as {c.example}."
        for c in coverage
        if c.short and attempt.answers
    ]
    if attempt.seen.strangers and coverage:
        some = ", ".join(list(attempt.seen.strangers)[:2])
        out.append(f"{len(attempt.seen.strangers):,} names are not in the wiring, such as {some}.")
    return out
