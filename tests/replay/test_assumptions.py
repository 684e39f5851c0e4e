"""What the simulator assumes of jams, and no publication says, must not decide whether congestion is told right."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from replay.drills import score as board
from replay.drills.lottery_traffic import TRAFFIC
from twin.simulator import congestion, jams

JAMS = tuple(lot for lot in TRAFFIC if lot.name in jams.FORMS)
# shares of the wait one and two hops from a jam, senders, pause for a wait, seconds between bursts of steps, load of
# a full port, packets lost behind a jam: half to twice of what is assumed, and more where nothing is known
LOW = {"_NEAR": 0.5, "_FAR": 0.2, "_SENDERS": 6}, {"_ETHERNET_PAUSE": 0.2, "_STEP_S": (1.0, 4.0), "_LOSSY": 5.0}
HIGH = {"_NEAR": 1.0, "_FAR": 0.7, "_SENDERS": 40}, {"_ETHERNET_PAUSE": 1.0, "_STEP_S": (4.0, 12.0), "_FULL": 0.93}
ODD = {"_NEAR": 0.6, "_FAR": 0.6, "_SENDERS": 12}, {"_CNP_PER_MARK": 1.0, "_ADAPTER_TICK": 4.0, "_LOSSY": 200.0}


@pytest.mark.parametrize(("of_jams", "of_ports"), [LOW, HIGH, ODD], ids=["low", "high", "odd"])
@pytest.mark.parametrize("name", ["rtx-pro-6000", "dgx-b200-ndr"])
def test_congestion_is_told_right_whatever_is_assumed_of_jams(
    name: str, of_jams: Mapping[str, object], of_ports: Mapping[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, values in ((jams, of_jams), (congestion, of_ports)):
        for constant, value in values.items():
            monkeypatch.setattr(module, constant, value)
    score = board.run(name, 17, 4, lots=JAMS)
    assert score.wrong == []
