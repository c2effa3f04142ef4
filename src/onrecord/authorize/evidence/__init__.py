"""Evidence profiles: forms of a call proof, exchangeable behind one interface."""

from __future__ import annotations

from onrecord.authorize.evidence.handle import HandleProfile
from onrecord.authorize.evidence.interface import (
    EvidenceProfile,
    ForeignEvidence,
    ProfileFacts,
    ProofClaims,
    ProofKey,
)
from onrecord.authorize.evidence.registry import PROFILES, enabled_profiles

__all__ = [
    "PROFILES",
    "EvidenceProfile",
    "ForeignEvidence",
    "HandleProfile",
    "ProfileFacts",
    "ProofClaims",
    "ProofKey",
    "enabled_profiles",
]
