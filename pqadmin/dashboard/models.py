"""The table of the dashboard: push templates, which the API knows too."""

from pqadmin.pages.push_templates import PushTemplate as PushTemplate
