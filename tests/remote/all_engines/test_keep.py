"""The tests of all engines on a store behind the API."""

from tests.conformance.operations.test_keep import *
