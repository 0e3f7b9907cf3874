"""Health of queues: a verdict from recorded observations, with its reasons, trends and targets."""

from queues.health.health import Health, decode, encode
from queues.health.levels import Code, Level, Reason, Trend, Verdict
from queues.health.observation import Observation
from queues.health.step import advance
from queues.health.targets import DEFAULTS, LIMIT_OF, Origin, Target, TargetRules, Targets, limits_of, resolve
from queues.health.verdict import unknown

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
