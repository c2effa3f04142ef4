"""Evidence profiles: forms of a call proof, exchangeable behind one interface."""

from __future__ import annotations

from onrecord.authorize.evidence.handle import HandleProfile
from onrecord.authorize.evidence.interface import (
    EvidenceProfile,
    ForeignEvidence,
    ProfileFacts,
    ProfileSupplies,
    ProofClaims,
    ProofKey,
)
from onrecord.authorize.evidence.jws import JwsProfile
from onrecord.authorize.evidence.registry import PROFILES, EnabledProfiles, enabled_profiles

__all__ = [
    "PROFILES",
    "EnabledProfiles",
    "EvidenceProfile",
    "ForeignEvidence",
    "HandleProfile",
    "JwsProfile",
    "ProfileFacts",
    "ProfileSupplies",
    "ProofClaims",
    "ProofKey",
    "enabled_profiles",
]
