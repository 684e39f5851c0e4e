"""Predicted beside published bus bandwidth; `python -m tests.twin.collective_table` writes docs/collectives.md."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from twin.collectives import Machine, best, bus_bandwidth, nvlink, technologies
from twin.collectives.formulas import Algorithm

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "collectives.md"
BEGIN, END = "<!-- table -->\n", "<!-- end of table -->\n"


@dataclass(frozen=True)
class Row:
    """An all-reduce. predicted, published: GB/s, the middle where a range is published. beyond: why it misses."""

    case: str
    algorithm: str
    predicted: float
    published: float
    shown: str
    source: str
    beyond: str

    @property
    def ratio(self) -> float:
        return self.predicted / self.published


def rows() -> list[Row]:
    results = tomllib.loads((ROOT / "tests/fixtures/collectives.toml").read_text("utf-8"))["result"]
    return [_row(**result) for result in results]


def _row(
    case: str,
    domains: int,
    gpus: int,
    gb_per_second: list[float],
    source: str,
    inside: tuple[int, float] | None = None,
    outside: float = 0.0,
    algorithm: Algorithm | None = None,
    beyond: str = "",
) -> Row:
    known = technologies()
    kind = nvlink(inside[1]) if inside else known["pcie"]
    nominal = inside[0] * inside[1] if inside else kind.link_bytes_per_second
    across = outside / 8 * known["network"].efficiency
    machine = Machine(domains, gpus, nominal * kind.efficiency, across, kind.in_network)
    chosen = algorithm or best("allreduce", machine)
    low, high = gb_per_second
    predicted = bus_bandwidth("allreduce", chosen, machine) / 1e9
    shown = f"{low:g}" if low == high else f"{low:g} to {high:g}"
    return Row(case, chosen, predicted, (low + high) / 2, shown, source, beyond)


def table() -> str:
    lines = ["| all-reduce | algorithm | predicted | published | ratio | source |", "|---|---|---|---|---|---|"]
    lines += [
        f"| {r.case} | {r.algorithm} | {r.predicted:.0f} | {r.shown} | {r.ratio:.2f} | {r.source} |" for r in rows()
    ]
    lines += ["", *(f"- {r.case}: {r.beyond}." for r in rows() if r.beyond)]
    return "\n".join(lines) + "\n"


def page(text: str) -> str:
    """The page with the table as it is now."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}{table()}{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
