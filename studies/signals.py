"""What other apps may listen to."""

from django.dispatch import Signal

# A participation became valid, or is no longer: the ratings of a pair changed. Sent once the change is committed,
# with ``attack_id`` and ``target_model_id``.
valid_ratings_changed = Signal()
