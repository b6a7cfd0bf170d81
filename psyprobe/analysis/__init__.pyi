from psyprobe.analysis.alignment import Alignment as Alignment
from psyprobe.analysis.alignment import Slices as Slices
from psyprobe.analysis.alignment import align as align
from psyprobe.analysis.alignment import alignment_score as alignment_score
from psyprobe.analysis.alignment import attainable_alignment as attainable_alignment
from psyprobe.analysis.alignment import score_slices as score_slices
from psyprobe.analysis.comparison.conditions import PeopleDifference as PeopleDifference
from psyprobe.analysis.comparison.conditions import compare_people as compare_people
from psyprobe.analysis.comparison.level_process import LevelProcess as LevelProcess
from psyprobe.analysis.comparison.level_process import (
    fit_level_process as fit_level_process,
)
from psyprobe.analysis.comparison.models import RankCorrelation as RankCorrelation
from psyprobe.analysis.comparison.models import (
    family_rank_correlation as family_rank_correlation,
)
from psyprobe.analysis.comparison.models import (
    partial_rank_correlation as partial_rank_correlation,
)
from psyprobe.analysis.comparison.models import rank_correlation as rank_correlation
from psyprobe.analysis.comparison.people import Band as Band
from psyprobe.analysis.comparison.people import GroupMean as GroupMean
from psyprobe.analysis.comparison.people import Shift as Shift
from psyprobe.analysis.comparison.people import band_of_draws as band_of_draws
from psyprobe.analysis.comparison.people import condition_shift as condition_shift
from psyprobe.analysis.comparison.people import group_mean as group_mean
from psyprobe.analysis.comparison.people import people_band as people_band
from psyprobe.analysis.comparison.posteriors import Ratio as Ratio
from psyprobe.analysis.comparison.posteriors import (
    ThresholdDifference as ThresholdDifference,
)
from psyprobe.analysis.comparison.posteriors import (
    fraction_of_people as fraction_of_people,
)
from psyprobe.analysis.comparison.posteriors import (
    threshold_difference as threshold_difference,
)
from psyprobe.analysis.comparison.ppd import PpdCurve as PpdCurve
from psyprobe.analysis.comparison.ppd import PpdScores as PpdScores
from psyprobe.analysis.comparison.ppd import score_over_ppd as score_over_ppd
from psyprobe.analysis.comparison.sample import Sample as Sample
from psyprobe.analysis.comparison.table import Comparison as Comparison
from psyprobe.analysis.comparison.table import compare as compare
from psyprobe.analysis.detection import DetectionScore as DetectionScore
from psyprobe.analysis.detection import ResponderScore as ResponderScore
from psyprobe.analysis.detection import score_detection as score_detection
from psyprobe.analysis.distance import angular_distance as angular_distance
from psyprobe.analysis.identification.confusions import ChoiceModel as ChoiceModel
from psyprobe.analysis.identification.confusions import Confusions as Confusions
from psyprobe.analysis.identification.confusions import choice_model as choice_model
from psyprobe.analysis.identification.confusions import (
    count_confusions as count_confusions,
)
from psyprobe.analysis.identification.confusions import (
    fit_choice_model as fit_choice_model,
)
from psyprobe.analysis.iso_response import IsoResponse as IsoResponse
from psyprobe.analysis.iso_response import fit_iso_response as fit_iso_response
from psyprobe.analysis.iso_response import iso_contrast as iso_contrast
from psyprobe.analysis.matching import MatchedCurves as MatchedCurves
from psyprobe.analysis.matching import Matches as Matches
from psyprobe.analysis.matching import MatchingError as MatchingError
from psyprobe.analysis.matching import MatchingResponder as MatchingResponder
from psyprobe.analysis.matching import MatchingScore as MatchingScore
from psyprobe.analysis.matching import match_contrast as match_contrast
from psyprobe.analysis.matching import match_result as match_result
from psyprobe.analysis.matching import matching_error as matching_error
from psyprobe.analysis.matching import normalise_responses as normalise_responses
from psyprobe.analysis.matching import score_matching as score_matching
from psyprobe.analysis.noise_ceiling import noise_ceilings as noise_ceilings
from psyprobe.analysis.published import PublishedScore as PublishedScore
from psyprobe.analysis.published import published_scores as published_scores
from psyprobe.analysis.published import replay as replay
from psyprobe.analysis.result_stimulus import thresholds_for as thresholds_for
from psyprobe.analysis.score import Score as Score
from psyprobe.analysis.score import score_table as score_table
from psyprobe.analysis.scoreboards import Scoreboard as Scoreboard
from psyprobe.analysis.scoreboards import scoreboard as scoreboard
from psyprobe.analysis.words.comparison import CsfScores as CsfScores
from psyprobe.analysis.words.comparison import bridge as bridge
from psyprobe.analysis.words.comparison import compare_with_human as compare_with_human
from psyprobe.analysis.words.comparison import csf_statistics as csf_statistics
from psyprobe.analysis.words.comparison import human_names as human_names
from psyprobe.analysis.words.csf import chat_csf as chat_csf
from psyprobe.analysis.words.fit import ChatCounts as ChatCounts
from psyprobe.analysis.words.fit import count_answers as count_answers
from psyprobe.analysis.words.score import Agreement as Agreement
from psyprobe.analysis.words.score import ChatScore as ChatScore
from psyprobe.analysis.words.score import answer_agreement as answer_agreement
from psyprobe.analysis.words.score import score_chat as score_chat
from psyprobe.analysis.words.trial_table import arrange_trials as arrange_trials
from psyprobe.analysis.words.trial_table import trials as trials
from psyprobe.files.flags import flag_words as flag_words
