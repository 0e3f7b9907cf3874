"""History of queues: depths and rates over ten minutes, two days and ninety days."""

from queues.history.points import HOURS, MINUTES, RESOLUTIONS, SECONDS, Point, Resolution
from queues.history.read_history import ALL_QUEUES, History, Stretch

__all__ = ["ALL_QUEUES", "HOURS", "MINUTES", "RESOLUTIONS", "SECONDS", "History", "Point", "Resolution", "Stretch"]
