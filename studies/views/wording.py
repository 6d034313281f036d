"""How the pages write values of the scale."""

from studies.models import ScaleWidget, Study


def instruction(study: Study, value: int) -> str:
    """What an instructed item says."""
    verb = "choose" if study.scale_widget == ScaleWidget.LIKERT else "move the slider to"
    end = {study.scale_minimum: ", the left end,", study.scale_maximum: ", the right end,"}.get(value, "")
    return f"This is an attention check. Please {verb} {with_sign(study, value)}{end} and continue."


def with_sign(study: Study, value: int) -> str:
    """A value of the scale as the page writes it: signed when the scale has two sides."""
    if study.scale_minimum >= 0 or value == 0:
        return str(value)
    return f"+{value}" if value > 0 else f"−{-value}"
