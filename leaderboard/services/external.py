"""Results from elsewhere: a file of ratings becomes an entry of a board, like those of studies here, and says so."""

import hashlib
import hmac
import secrets
import tempfile
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.files.base import ContentFile
from django.db import transaction
from django.utils import timezone

from imagedb.models import Attack, TargetModel
from leaderboard.inputs import InputRating, Inputs
from leaderboard.models import Board, ExternalResult
from leaderboard.models.external import HighMeans
from leaderboard.services.requests import request_recomputation
from leaderboard.statistics.analysis import RatingScale
from leaderboard.statistics.ratings import Ratings
from leaderboard.statistics.ratings_file import UnreadableRatings, read_ratings, scale_in_doubt

LARGEST_FILE = 50 * 1024**2


def read_external(content: bytes, name: str, board: Board, high_means: str) -> Ratings:
    """The ratings in an uploaded file, on the board's scale, in the file's own direction.

    Raises UnreadableRatings, naming the file as it was uploaded, and line and column.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ratings.csv"
        path.write_bytes(content)
        scale = RatingScale(board.scale_minimum, board.scale_maximum, high_means == HighMeans.MODIFIED)
        try:
            return read_ratings(path, scale)
        except UnreadableRatings as error:
            raise UnreadableRatings(str(error).replace(str(path), name)) from error


def check_external(content: bytes, name: str, board: Board, high_means: str) -> None:
    """Raise UnreadableRatings for a file that is to be refused, also one that looks as if given on another scale."""
    ratings = read_external(content, name, board, high_means)
    scale = RatingScale(board.scale_minimum, board.scale_maximum, high_means == HighMeans.MODIFIED)
    if doubt := scale_in_doubt(ratings, scale):
        raise UnreadableRatings(f"{name}: {doubt} Choose a board whose scale is that of the file.")


def refusals(board: Board, target_model: TargetModel) -> dict[str, str]:
    """Why a result from elsewhere has no place on a board, by the field that would have to be another."""
    if board.is_demo:
        return {"board": "A board of the demonstration holds no real results. Choose another board."}
    if board.protocol:
        return {"board": "It takes only studies made from one preset, which ratings from elsewhere are not."}
    if board.verified_images_only:
        return {"board": "It takes only images that are known to mislead; of those of a file that is not known."}
    if board.target_models.exists() and not board.target_models.filter(pk=target_model.pk).exists():
        return {"target_model": f"The board “{board}” does not take it. Choose another board."}
    return {}


def add_external_result(
    *,
    board: Board,
    attack: Attack,
    target_model: TargetModel,
    content: bytes,
    name: str,
    high_means: str,
    citation: str,
    added_by: Any,
    source_url: str = "",
    attack_success_rate: float | None = None,
) -> ExternalResult:
    """Keep an uploaded file, and ask for its entry. Raises UnreadableRatings or ValidationError.

    Whoever calls it enqueues the task; else beat finds the request.
    """
    check_external(content, name, board, high_means)
    external = ExternalResult(
        board=board,
        attack=attack,
        target_model=target_model,
        high_means=high_means,
        citation=citation,
        source_url=source_url,
        attack_success_rate=attack_success_rate,
        added_by=added_by,
        secret=secrets.token_hex(32),
        file_sha256=hashlib.sha256(content).hexdigest(),
        file_bytes=len(content),
    )
    if refused := refusals(board, target_model):
        raise ValidationError(refused)
    external.file.name = "ratings.csv"  # for the check of required fields; the storage gives it its own
    external.full_clean(exclude=["file"])
    external.file.save("ratings.csv", ContentFile(content), save=False)
    with transaction.atomic():
        external.save()
        request_recomputation(external.attack_id, external.target_model_id)
    return external


def withdraw_external_result(external: ExternalResult, *, reason: str) -> None:
    """Show it nowhere any more: the draft loses its entry, published snapshots hide theirs."""
    if not reason.strip():
        raise ValidationError({"reason": "Say why the result is withdrawn."})
    with transaction.atomic():
        locked = ExternalResult.objects.select_for_update().get(pk=external.pk)
        if locked.withdrawn_at is None:
            locked.withdrawn_at, locked.withdrawal_reason = timezone.now(), reason.strip()
            locked.save(update_fields=["withdrawn_at", "withdrawal_reason"])
            request_recomputation(locked.attack_id, locked.target_model_id)


def external_inputs(external: ExternalResult) -> Inputs:
    """Its ratings as inputs: on the board's scale, "higher = more modified", under ids that name nobody.

    A participant's public id is a keyed digest of the place of its id among those of the file: always the same, and
    nothing that anybody could recognise. An image keeps its id, with its kind before it.
    """
    board = external.board
    with external.file.open("rb") as file:
        content = file.read()
    name = f"the file of the external result {external.pk}"
    ratings = read_external(content, name, board, external.high_means)
    if external.high_means == HighMeans.CLEAN:
        ratings = ratings.mirrored((board.scale_minimum + board.scale_maximum) / 2)
    key = bytes.fromhex(external.secret)
    people = [
        hmac.new(key, str(person).encode(), "sha256").hexdigest()[:32] for person in range(ratings.participant_count)
    ]
    return Inputs.of(
        external.attack.slug,
        external.target_model.slug,
        (
            InputRating(
                participant=people[participant],
                image=f"{'modified' if is_modified else 'clean'}:{ratings.image_ids[image]}",
                is_modified=is_modified,
                value=value,
                source="",
                misleads=None,
            )
            for participant, image, is_modified, value in zip(
                ratings.participants.tolist(),
                ratings.images.tolist(),
                ratings.is_modified.tolist(),
                ratings.values.tolist(),
                strict=True,
            )
        ),
    )
