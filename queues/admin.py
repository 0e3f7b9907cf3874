"""What administration tools need beside the public API: one module to import for screens and commands.

It defines nothing. It offers the parts of the core that show, parse and check values, and the maintenance tools.
"""

from queues.actions.position import Neighbors, Position, neighbors
from queues.actions.preview import ReprioritizePreview
from queues.actions.push import MAX_ITEMS as MAX_PUSH_JOB_ITEMS
from queues.actions.push import Pushed
from queues.aio.queue import for_coroutines
from queues.aio.waiting import wait_for as wait_in_loop
from queues.background.service import Upkeep
from queues.background.sweeper import Swept
from queues.background.unclaimed_staging import UNCLAIMED_BY as UNCLAIMED_BY
from queues.bulk.bulk_job import HELD_MS as BULK_HELD_MS
from queues.bulk.bulk_job import PUSH as BULK_PUSH
from queues.bulk.bulk_job import UNDO as BULK_UNDO
from queues.bulk.checks import ACTS as BULK_ACTIONS
from queues.bulk.checks import FASTEST as BULK_FASTEST
from queues.bulk.checks import SLOWEST as BULK_SLOWEST
from queues.bulk.runner import JobRunner
from queues.bulk.survey import SCAN as SURVEY_SCAN
from queues.bulk.survey import Survey
from queues.bulk.survey import survey as survey_matches
from queues.catalog.store_record import FORMAT as STORE_FORMAT
from queues.consumers.consumer import Client
from queues.health import LIMIT_OF, Health, Observation, Target, TargetRules, Targets
from queues.health import Code as HealthCode
from queues.health import Level as HealthLevel
from queues.health import Origin as TargetOrigin
from queues.health import Reason as HealthReason
from queues.health import Trend as HealthTrend
from queues.health import Verdict as HealthVerdict
from queues.health import advance as advance_health
from queues.health import unknown as unknown_health
from queues.health.breaches import NOTHING_KNOWN, Share
from queues.health.growth import SEEN as GROWTH_SEEN
from queues.health.health import STALE as HEALTH_STALE
from queues.health.rounding import AT_LEAST as TOLD_AT_LEAST
from queues.health.rounding import with_estimates
from queues.health.signals import silence_of
from queues.health.signals import warns_after as health_warns_after
from queues.history import ALL_QUEUES, HOURS, MINUTES, SECONDS
from queues.history import Point as HistoryPoint
from queues.history import Resolution as HistoryResolution
from queues.history import Stretch as HistoryStretch
from queues.history.pending_writes import FLUSH as HISTORY_FLUSH
from queues.history.points import STATES as HISTORY_STATES
from queues.history.sampling import as_point as as_history_point
from queues.history.sampling import mix_of as history_mix
from queues.items.attached import as_item as attached_item
from queues.items.counters import BY_HAND
from queues.items.locate import Picked, Selection
from queues.items.ready import MAX_BYTES as MAX_TRANSACTION_BYTES
from queues.items.ready import MAX_ITEMS as MAX_TRANSACTION_ITEMS
from queues.items.scan import MAX_TEXT as MAX_SEARCH_TEXT
from queues.items.stored_item import digest as item_digest
from queues.keys.queue_keys import STATES
from queues.kv import verify_store
from queues.model.bands import default_edges
from queues.model.codec import CODECS, Codec, codec_of
from queues.model.config import Config
from queues.model.cursor import End
from queues.model.error_groups import MAX_GROUP as MAX_ERROR_GROUP
from queues.model.error_groups import error_group
from queues.model.foreign_tuples import Element as TupleElement
from queues.model.foreign_tuples import decoded_value
from queues.model.foreign_tuples import describe as describe_element
from queues.model.foreign_tuples import unpack as unpack_tuple
from queues.model.ids import EPOCH, IdGenerator, minted_at, minted_ms, to_ms
from queues.model.ids import at as time_of_ms
from queues.model.ids import parse as parse_item_id
from queues.model.limits import GROWS as SHORTEST_GROWTH
from queues.model.limits import LIMIT_NAMES, UNSET, Limits, check_limits
from queues.model.limits import LONGEST as LONGEST_TARGET
from queues.model.limits import MOST as MOST_ITEMS
from queues.model.log_limit import LogLimit
from queues.model.lookalikes import described as described_name
from queues.model.lookalikes import lookalikes
from queues.model.name_patterns import check_glob
from queues.model.name_patterns import pattern as name_pattern
from queues.model.names import canonical as canonical_name
from queues.model.names import check_name
from queues.model.priority import TYPES as PRIORITY_TYPES
from queues.model.priority import PriorityType, parse_priority
from queues.model.priority import normalize as normalize_priority
from queues.model.records import MAX_VALUE_SIZE
from queues.model.records import UNREADABLE as UNREADABLE_RECORD
from queues.model.settings import MAX_FIELDS, MAX_NOTE, MAX_RULES, Settings, check_settings, settings_of
from queues.model.settings import NAMES as SETTING_NAMES
from queues.model.settings import plain as plain_settings
from queues.operations.lease_block import LeaseKeeper
from queues.operations.search import Found
from queues.operations.settle import parse_lease
from queues.queue import for_client, for_taker
from queues.remote.address import check_address
from queues.serving.clock import SKEWED as SKEWED_CLOCK
from queues.serving.clock import describe as describe_skew
from queues.serving.clock import spelled as spelled_duration
from queues.status.health_observation import average_rates, health_at, observation_of
from queues.status.site_protocol import JudgedQueue, QueueLook, Site
from queues.status.status import unreadable_status
from queues.store import MAX_SNAPSHOT
from queues.tools.backup import Backup, back_up, restore_backup
from queues.tools.copy import Copied, Progress, copy_store
from queues.tools.doctor import Examination
