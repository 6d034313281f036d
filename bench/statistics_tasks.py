"""The worker's side of bench/rating_statistics.py: one task analyses the ratings of one pair, as the site would."""

import json
import os
import resource
import time
from pathlib import Path

import django
import numpy as np

django.setup()

from leaderboard.statistics.analysis import RatingScale, analyse  # noqa: E402
from leaderboard.statistics.ratings import Ratings  # noqa: E402
from scooter_site.celery import app  # noqa: E402
from scooter_site.common.tasks import task  # noqa: E402

__all__ = ["analyse_pair", "app"]


@task
def analyse_pair(source: str) -> None:
    """Analyse the .npz file ``source``; the result is written beside it, whole."""
    start, cpu = time.time(), time.process_time()
    columns = np.load(source)
    ratings = Ratings.from_columns(*(columns[name] for name in ("values", "is_modified", "participants", "images")))
    model = analyse(ratings, RatingScale(-100, 100, True)).mixed_model
    result = {
        "process": os.getpid(),
        "start": start,
        "end": time.time(),
        "cpu": time.process_time() - cpu,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "difference": model and model.difference,
    }
    unfinished = Path(source).with_suffix(".unfinished")
    unfinished.write_text(json.dumps(result))
    unfinished.rename(Path(source).with_suffix(".json"))
