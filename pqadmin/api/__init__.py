"""The HTTP API under /api/v1/."""

from ninja import Schema

# What answers hold is for the schema alone: it is built when that is asked for, and not at each start.
Schema.model_config["defer_build"] = True
