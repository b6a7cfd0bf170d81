"""Human vision: models of contrast sensitivity, their fit to data, and measured thresholds."""

from __future__ import annotations

from psyprobe.human.achromatic import (
    barten_csf,
    stela_csf,
    watson_ahumada_csf,
    watson_malo_csf,
)
from psyprobe.human.castle import CastleMechanisms, castle_csf, castle_mechanisms
from psyprobe.human.datasets import observers, thresholds
from psyprobe.human.evaluation import CsfEvaluation, evaluate_csf
from psyprobe.human.flicker import ela_tcsf, flicker_thresholds
from psyprobe.human.leave_one_out import castle_csf_without
from psyprobe.human.matched import noise_matched_csf
from psyprobe.human.measured import (
    MaskingData,
    MatchingData,
    ModelFestGabors,
    masking_data,
    matching_data,
    modelfest_csf,
    modelfest_gabors,
)
from psyprobe.human.models import CSF_MODELS, csf
from psyprobe.human.points import Conditions, matched_thresholds
from psyprobe.human.postreceptoral import postreceptoral_csf
from psyprobe.human.reference import (
    Reference,
    human_names,
    list_human,
    load_reference,
    mismatches,
)
from psyprobe.human.signature import ContrastSensitivity

__all__ = [
    "CSF_MODELS",
    "CastleMechanisms",
    "Conditions",
    "ContrastSensitivity",
    "CsfEvaluation",
    "MaskingData",
    "MatchingData",
    "ModelFestGabors",
    "Reference",
    "barten_csf",
    "castle_csf",
    "castle_csf_without",
    "castle_mechanisms",
    "csf",
    "ela_tcsf",
    "evaluate_csf",
    "flicker_thresholds",
    "human_names",
    "list_human",
    "load_reference",
    "masking_data",
    "matched_thresholds",
    "matching_data",
    "mismatches",
    "modelfest_csf",
    "modelfest_gabors",
    "noise_matched_csf",
    "observers",
    "postreceptoral_csf",
    "stela_csf",
    "thresholds",
    "watson_ahumada_csf",
    "watson_malo_csf",
]
