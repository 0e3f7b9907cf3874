"""Health of queues: a verdict from recorded observations, with its reasons, trends and targets."""

from queues.health.model import Health, advance, decode, encode, unknown
from queues.health.observation import Observation
from queues.health.targets import DEFAULTS, Targets
from queues.health.verdict import Code, Level, Reason, Trend, Verdict

__all__ = [
    "DEFAULTS",
    "Code",
    "Health",
    "Level",
    "Observation",
    "Reason",
    "Targets",
    "Trend",
    "Verdict",
    "advance",
    "decode",
    "encode",
    "unknown",
]
