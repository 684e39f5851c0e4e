"""A fluid model of the network: which way flows go, how fast max-min fairness lets them, when they are done.

Flows are rows of a sparse matrix over directed links (`Routes`); no packet is simulated. The units are the
caller's: capacities in bits/s give rates in bits/s and take sizes in bits.
"""

from twin.flows.fair import Allocation, max_min
from twin.flows.router import Router
from twin.flows.routes import Routes
from twin.flows.transfers import completion_times

__all__ = ["Allocation", "Router", "Routes", "completion_times", "max_min"]
