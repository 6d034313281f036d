"""Who may begin a study now, and how somebody who may not is told."""

from studies.models import ParticipationKind, Study, StudyStatus


class StudyFull(Exception):
    """Every place of the study is taken, for now or for good."""


class StudyNotOpen(Exception):
    """Nobody new may enter now. ``reason``: "not_started", "paused", "closed" or "already_took_part"."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class AlreadyTookPart(StudyNotOpen):
    """This panel participant has already finished this study, in another session."""

    def __init__(self) -> None:
        super().__init__("already_took_part")


class SessionOfOtherKind(Exception):
    """The session has taken part, but as a test, and this is none; or the other way round."""


class SessionOfAnother(Exception):
    """The session has taken part, as somebody else: a parameter that is the same for several people is no session."""


def refuse_unless_open(study: Study, kind: str) -> None:
    status = study.status
    open_states = {StudyStatus.RUNNING}
    if kind != ParticipationKind.REAL:
        open_states |= {StudyStatus.READY, StudyStatus.PAUSED}
    if status in open_states:
        return
    if status in {StudyStatus.CLOSED, StudyStatus.ARCHIVED}:
        raise StudyNotOpen("closed")
    raise StudyNotOpen("paused" if status == StudyStatus.PAUSED else "not_started")
