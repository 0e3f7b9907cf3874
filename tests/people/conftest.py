"""What the pages about people are tested with."""

from tests.accounts.conftest import cheap_passwords, granted, jobs, person, visitor

__all__ = ["cheap_passwords", "granted", "jobs", "person", "visitor"]
