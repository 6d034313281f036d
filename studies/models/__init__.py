"""Studies and what people answered in them."""

from studies.models.decision import Decision, Verdict
from studies.models.demographics import Demographics
from studies.models.materials import (
    ColourPlate,
    CompletionCode,
    Dataset,
    DatasetImage,
    Modification,
    PlateKind,
    Stimulus,
    StimulusPurpose,
    StudyText,
    TextKind,
)
from studies.models.messages import ParticipantMessage
from studies.models.participation import (
    FeedbackAnswer,
    ParticipantIdentity,
    Participation,
    ParticipationEvent,
    ParticipationKind,
)
from studies.models.payments import BonusBatch, Payment, PaymentRun, PaymentState
from studies.models.recruitment import PanelStudy, Submission, WebhookEvent, Workspace
from studies.models.study import AttentionPolicy, Panel, ScaleDirection, ScaleWidget, Study, StudyStatus
from studies.models.trials import PairTrial, PlateTrial, Rating, RatingChange, Trial, TrialKind

__all__ = [
    "AttentionPolicy",
    "BonusBatch",
    "ColourPlate",
    "CompletionCode",
    "Dataset",
    "DatasetImage",
    "Decision",
    "Demographics",
    "FeedbackAnswer",
    "Modification",
    "PairTrial",
    "Panel",
    "PanelStudy",
    "ParticipantIdentity",
    "ParticipantMessage",
    "Participation",
    "ParticipationEvent",
    "ParticipationKind",
    "Payment",
    "PaymentRun",
    "PaymentState",
    "PlateKind",
    "PlateTrial",
    "Rating",
    "RatingChange",
    "ScaleDirection",
    "ScaleWidget",
    "Stimulus",
    "StimulusPurpose",
    "Study",
    "StudyStatus",
    "StudyText",
    "Submission",
    "TextKind",
    "Trial",
    "TrialKind",
    "Verdict",
    "WebhookEvent",
    "Workspace",
]
