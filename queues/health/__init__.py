"""Health of queues: a verdict from recorded observations, with its reasons, trends and targets."""

from queues.health.levels import Code, Level, Reason, Trend, Verdict
from queues.health.observation import Observation
from queues.health.targets import DEFAULTS, Origin, Target, TargetRules, Targets, limits_of, resolve
from queues.health.verdict import LIMIT_OF, Health, advance, decode, encode, unknown

__all__ = [
    "DEFAULTS",
    "LIMIT_OF",
    "Code",
    "Health",
    "Level",
    "Observation",
    "Origin",
    "Reason",
    "Target",
    "TargetRules",
    "Targets",
    "Trend",
    "Verdict",
    "advance",
    "decode",
    "encode",
    "limits_of",
    "resolve",
    "unknown",
]
