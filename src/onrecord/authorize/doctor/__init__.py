"""`onrecord doctor`: self-check of configuration, ownership, keys, clocks, policy, sockets and isolation."""

from onrecord.authorize.doctor.examination import examine
from onrecord.authorize.doctor.results import Check, Diagnosis

__all__ = ["Check", "Diagnosis", "examine"]
