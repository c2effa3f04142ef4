"""`onrecord up`: authority, recorder and guards as children of one supervisor."""

from onrecord.authorize.supervisor.children import (
    Child,
    all_children,
    authority_child,
    child_environment,
    guard_child,
    recorder_child,
    start_and_wait,
    start_authority,
    start_child,
    start_guard,
    start_recorder,
)
from onrecord.authorize.supervisor.restarts import START_TIMEOUT_S, Next, Restarts, Verdict
from onrecord.authorize.supervisor.run import run_up
from onrecord.authorize.supervisor.supervisor import Supervisor, Timing

__all__ = [
    "START_TIMEOUT_S",
    "Child",
    "Next",
    "Restarts",
    "Supervisor",
    "Timing",
    "Verdict",
    "all_children",
    "authority_child",
    "child_environment",
    "guard_child",
    "recorder_child",
    "run_up",
    "start_and_wait",
    "start_authority",
    "start_child",
    "start_guard",
    "start_recorder",
]
