"""`make bench`: every speed claim, measured beside a peer in the same run. It prints ratios and judges nothing."""

from __future__ import annotations

import argparse

from tests.benchmarks import codec, fabric, flows, host, ingest, nvml, prometheus, screen, startup, whatif, wiring

ALL = {
    "startup": startup.run,
    "codec": codec.run,
    "ingest": ingest.run,
    "wiring": wiring.run,
    "nvml": nvml.run,
    "fabric": fabric.run,
    "flows": flows.run,
    "whatif": whatif.run,
    "screen": screen.run,
    "host": host.run,
    "prometheus": prometheus.run,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="which ones; all when none is named")
    for name in parser.parse_args().names or ALL:
        print(f"== {name}: {ALL[name].__doc__}")
        for row in ALL[name]():
            print(f"   {row}")


if __name__ == "__main__":
    main()
