"""What a snapshot says of NVLinks and of how old readings are."""

from __future__ import annotations

import numpy as np
import pytest

from tests.twin.scale_up import Boards, boards


def test_errors_of_all_kinds_of_an_nvlink_are_one_rate_and_unknown_where_none_is_counted() -> None:
    hand = Boards(boards())
    for second in range(1, 5):
        hand.nvlink["crc_errors"][3], hand.nvlink["recovery_errors"][3] = 40 * second, 2 * second
        hand.nvlink["symbol_errors"][4] = np.nan
        for metric in ("crc_errors", "replay_errors", "recovery_errors", "symbol_errors"):
            hand.nvlink[metric][5] = np.nan
        hand.run(second)
    hand.finish()
    errors = hand.twin.snapshot().nvlink["errors"]
    assert errors[3] == pytest.approx(42) and errors[4] == 0 and np.isnan(errors[5])


def test_ages_grow_while_a_source_is_silent_and_are_unknown_where_nothing_was_read() -> None:
    hand = Boards(boards())
    hand.run(3)
    hand.silent = {"n1"}
    hand.run(9)
    hand.finish()
    age = hand.twin.snapshot().age
    links = len(age["nvlink"]) // 2
    assert (age["nvlink"][:links] < 2).all() and (age["nvlink"][links:] > 5).all()
    assert np.isnan(age["node"]).all()
