"""Text and tables in LaTeX, and entries in BibTeX. Pure."""

from collections.abc import Iterable, Mapping, Sequence

# Each character by itself: a replacement must never be replaced again.
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "\N{MINUS SIGN}": "$-$",
    "–": "--",
    "±": r"$\pm$",
    "α": r"$\alpha$",
    "′": r"$'$",
    "’": "'",
    "“": "``",
    "”": "''",
    "\n": " ",
    "\r": " ",
}


def escaped(text: str) -> str:
    """Text that LaTeX sets as it stands."""
    return "".join(_SPECIAL.get(character, character) for character in text)


def table(
    heads: Sequence[tuple[str, bool]],
    rows: Iterable[Sequence[str]],
    *,
    caption: str,
    label: str,
    comments: Sequence[str],
) -> str:
    """A table for the package booktabs; ``heads`` are (text, whether it is a column of numbers), the rest plain text.

    ``comments`` stand above it, one per line.
    """
    lines = [f"% {' '.join(comment.split())}" for comment in comments]
    lines += [
        r"\begin{table}",
        r"  \centering",
        rf"  \caption{{{escaped(caption)}}}",
        rf"  \label{{{label}}}",
        rf"  \begin{{tabular}}{{{''.join('r' if is_number else 'l' for _, is_number in heads)}}}",
        r"    \toprule",
        f"    {_row(name for name, _ in heads)}",
        r"    \midrule",
        *(f"    {_row(row)}" for row in rows),
        r"    \bottomrule",
        r"  \end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _row(cells: Iterable[str]) -> str:
    return " & ".join(_cell(cell) for cell in cells) + r" \\"


def _cell(text: str) -> str:
    r"""A cell that begins with a bracket would be taken for the option of the \\ before it."""
    cell = escaped(text)
    return f"{{}}{cell}" if cell.startswith(("[", "*")) else cell


def bibtex(kind: str, key: str, fields: Mapping[str, str]) -> str:
    """One BibTeX entry; values are plain text, except addresses, which are kept as they are."""
    width = max(len(name) for name in fields)
    lines = [
        f"  {name.ljust(width)} = {{{value if name == 'url' else _protected(value)}}},"
        for name, value in fields.items()
        if value
    ]
    return "\n".join([f"@{kind}{{{key},", *lines, "}"]) + "\n"


def _protected(text: str) -> str:
    """Outer braces keep capitals, which many styles would make small."""
    return f"{{{escaped(text)}}}"
