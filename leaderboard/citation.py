"""How to cite a snapshot or one of its entries."""

from leaderboard.latex import bibtex
from leaderboard.models import Snapshot
from leaderboard.selectors.rows import Row

PUBLISHER = "Scooter"


def cite_snapshot(snapshot: Snapshot, address: str) -> str:
    """BibTeX of a snapshot; ``address`` is the whole one, with the snapshot's number."""
    key = f"scooter-{snapshot.board.slug}-{snapshot.number}"
    return _cite(key, f"{snapshot.board.name}: human ratings of adversarial examples", snapshot, address)


def cite_entry(entry: Row, address: str) -> str:
    """BibTeX of one entry of a snapshot."""
    snapshot = entry.snapshot
    key = f"scooter-{snapshot.board.slug}-{snapshot.number}-{entry.attack.slug}-{entry.target_model.slug}"
    return _cite(key, f"{entry}: how perceptible its changes are to people", snapshot, address)


def _cite(key: str, title: str, snapshot: Snapshot, address: str) -> str:
    if (published := snapshot.published_at) is None:
        raise ValueError("Only what is published can be cited.")
    return bibtex(
        "misc",
        key,
        {
            "title": f"Retracted: {title}" if snapshot.is_retracted else title,
            "author": PUBLISHER,
            "year": str(published.year),
            "month": published.strftime("%b").lower(),
            "note": f"Board {snapshot.board.name}, snapshot {snapshot.number} of {published:%Y-%m-%d}"
            f"{_retraction(snapshot)}, input digest {snapshot.input_digest[:16]}",
            "url": address,
        },
    )


def _retraction(snapshot: Snapshot) -> str:
    return f", retracted on {snapshot.retracted_at:%Y-%m-%d}" if snapshot.retracted_at else ""
