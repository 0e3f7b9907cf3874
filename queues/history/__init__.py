"""The history of queues: what they held and did, over ten minutes, two days and ninety days."""

from queues.history.points import HOURS, MINUTES, RESOLUTIONS, SECONDS, Point, Resolution
from queues.history.reading import History, Stretch

__all__ = ["HOURS", "MINUTES", "RESOLUTIONS", "SECONDS", "History", "Point", "Resolution", "Stretch"]
