"""What-if: break, mend or slow something in a copy of the twin's state, and compare before with after."""

from twin.whatif.change import Change
from twin.whatif.question import Answer, JobChange, WhatIf
from twin.whatif.report import to_json
from twin.whatif.sweep import CLASSES, Outcome, Sweep, pairs, singles

__all__ = ["CLASSES", "Answer", "Change", "JobChange", "Outcome", "Sweep", "WhatIf", "pairs", "singles", "to_json"]
