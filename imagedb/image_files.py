"""The files an import reads: a folder, a ZIP archive or a prefix of a bucket behind one interface. Pure: no Django.

Files are read one at a time into memory and never written to a path of someone else's choosing. What cannot be an
image by its name, size or place is refused with its name and the reason.
"""

import lzma
import os
import stat
import struct
import weakref
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import IO, Generic, Protocol, TypeVar

from imagedb.manifest import CONTROL_CHARACTERS, normalise_path

MAX_FILE_BYTES = 64 * 1024 * 1024
# A million rows have about 100 MB. A manifest is read as a stream, so that its size is a matter of time only.
MAX_MANIFEST_BYTES = 1024 * 1024 * 1024
# Deflate does up to 1,030:1; an uncompressed bitmap of a photograph reaches about 2:1. Small files may do as they like,
# but not many of them: an archive as a whole is held to the same ratio.
MAX_RATIO = 100
RATIO_APPLIES_FROM_BYTES = 1024 * 1024
TOTAL_RATIO_APPLIES_FROM_BYTES = 1024 * 1024 * 1024
# The directory of an archive is in memory whole, with about 600 bytes for each file.
MAX_MEMBERS = 200_000
MAX_DIRECTORY_BYTES = 50 * 1024 * 1024

# What zipfile lets through of a damaged, encrypted or unknown member: each decompressor has errors of its own.
UNPACKING_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    NotImplementedError,
    OSError,
    RuntimeError,
    ValueError,
)

JUNK_FOLDERS = {"__MACOSX"}
JUNK_NAMES = {".ds_store", "thumbs.db", "desktop.ini"}
ARCHIVE_ENDINGS = {".zip", ".7z", ".rar", ".tar", ".tgz", ".gz", ".bz2", ".xz", ".zst"}
MANIFEST_ENDINGS = {".csv", ".jsonl"}

# APPNOTE.TXT 6.3.10: sizes of the fixed part of a local header, signature of an entry of the directory, flag of a name
# in UTF-8, and number of Info-ZIP's extra field with the name in UTF-8 (4.3.7, 4.3.12, 4.4.4, 4.6.9).
LOCAL_HEADER_BYTES = 30
DIRECTORY_ENTRY = b"PK\x01\x02"
UTF8_NAME = 0x800
UNICODE_PATH = 0x7075

Place = TypeVar("Place")


class FileProblem(ValueError):
    """A file cannot be found or must not be read; the message says why and what to do."""


class NoSuchFile(FileProblem):
    """No file has that name."""


class ImageFiles(Protocol):
    """Where images come from. ``names`` are paths relative to the root, with forward slashes."""

    label: str
    names: list[str]
    junk_count: int
    refused: list[str]
    hint: str  # why a name may not be found; empty if all is as it should be

    def read(self, name: str) -> bytes:
        """The bytes of one of ``names``. Raises FileProblem."""
        ...

    def open_manifest(self, name: str) -> IO[bytes]:
        """One of ``names`` as a stream, for a manifest: it may be larger than an image. Raises FileProblem."""
        ...


def is_junk(name: str) -> bool:
    """Whether an operating system put the file there: __MACOSX/._a.jpg, .DS_Store, Thumbs.db."""
    path = PurePosixPath(name)
    return bool(JUNK_FOLDERS & set(path.parts)) or path.name.lower() in JUNK_NAMES or path.name.startswith("._")


class Listing(Generic[Place]):
    """The names that may be taken, each with the place its file is at, and the reasons against the others."""

    def __init__(self, label: str, kind: str) -> None:
        """``label`` and ``kind`` are for people, as in "the archive a.zip" and "archive"."""
        self.label = label
        self.refused: list[str] = []
        self.junk_count = 0
        self.hint = ""
        self._kind = kind
        self._places: dict[str, Place] = {}

    def _add(self, given: str, place: Place, *, is_link: bool = False) -> None:
        try:
            name = normalise_path(given)
        except ValueError:
            self.refused.append(f"{given!a} leads out of the {self._kind}, or is a name that no manifest can give")
            return
        if CONTROL_CHARACTERS.search(name):
            self.refused.append(f"{name!a} is a name that no manifest can give")
        elif is_junk(name):
            self.junk_count += 1
        elif is_link:
            self.refused.append(f"{name} is a link; put the file itself there")
        elif PurePosixPath(name).suffix.lower() in ARCHIVE_ENDINGS:
            self.refused.append(f"{name} is an archive within the {self._kind}; unpack it and put its files there")
        elif name in self._places:
            self.refused.append(f"{name} is in the {self._kind} twice; the first was taken")
        else:
            self._places[name] = place


class FolderFiles(Listing[Path]):
    """The files below a folder. Links are refused: they may lead to any file of the machine."""

    def __init__(self, root: Path, manifest: Path | None = None) -> None:
        """A ``manifest`` that lies among the images is not one of them."""
        super().__init__(f"the folder {root}", "folder")
        manifest_path = None if manifest is None else os.path.realpath(manifest)
        for folder, subfolders, files in os.walk(root):
            linked = [name for name in subfolders if (Path(folder) / name).is_symlink()]
            for file in sorted(files + linked):
                path = Path(folder) / file
                if os.path.realpath(path) != manifest_path:
                    self._add(path.relative_to(root).as_posix(), path, is_link=path.is_symlink())
        self.names = sorted(self._places)

    def read(self, name: str) -> bytes:
        with self._open(name, MAX_FILE_BYTES) as file:
            try:
                return file.read()
            except OSError as error:
                raise FileProblem(f"{name} cannot be read: {error.strerror or error}") from error

    def open_manifest(self, name: str) -> IO[bytes]:
        return self._open(name, MAX_MANIFEST_BYTES)

    def _open(self, name: str, limit: int) -> IO[bytes]:
        try:
            # Not even if it has become a link since the folder was read.
            file = open(self._places[name], "rb", opener=_open_unless_link)  # noqa: SIM115 - the caller closes it
        except OSError as error:
            raise FileProblem(f"{name} cannot be read: {error.strerror or error}") from error
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
            file.close()
            raise FileProblem(
                too_large(name, status.st_size, limit) if status.st_size > limit else f"{name} is no ordinary file"
            )
        return file


class ArchiveFiles(Listing[zipfile.ZipInfo]):
    """The members of a ZIP archive. Raises FileProblem if it is none."""

    def __init__(self, file: Path | IO[bytes], label: str) -> None:
        super().__init__(f"the archive {label}", "archive")
        if isinstance(file, Path):
            file = open(file, "rb")  # noqa: SIM115 - open for as long as this object lives
            weakref.finalize(self, file.close)
        self._source = _Source(file)
        try:
            self._archive = zipfile.ZipFile(self._source)
        except UnicodeDecodeError as error:
            raise FileProblem(
                f"{label} has a file whose name {error.object!r} is said to be UTF-8 and is not; make the archive again"
            ) from error
        except FileProblem as problem:
            raise FileProblem(f"{label} {problem}") from None
        except UNPACKING_ERRORS as error:
            raise FileProblem(f"{label} is not a ZIP archive, or is damaged ({error})") from error
        self._source.is_listed = True
        members = self._archive.infolist()
        overlapping = _overlapping(members, self._archive.start_dir)
        for member in members:
            if member.is_dir():
                continue
            name, is_utf8 = _name_of(member)
            if member in overlapping:
                self.refused.append(f"{name!a} shares its bytes with another file of the archive; make it again")
            else:
                self._add(name, member, is_link=stat.S_ISLNK(member.external_attr >> 16))
                if not is_utf8:
                    self.hint = (
                        f"names of the archive that are not in UTF-8 may be read wrongly, such as {name}; "
                        "make the archive with UTF-8 names"
                    )
        self._refuse_by_total(label)
        self.names = sorted(self._places)

    def read(self, name: str) -> bytes:
        member = self._places[name]
        if reason := _reason_against(member, MAX_FILE_BYTES):
            raise FileProblem(f"{name} {reason}")
        try:
            with self._archive.open(member) as stream:
                # One byte more than allowed: the size in the archive's directory is only a claim.
                content = stream.read(MAX_FILE_BYTES + 1)
        except UNPACKING_ERRORS as error:
            raise FileProblem(f"{name} cannot be unpacked: {error}; make the archive again") from error
        if len(content) > MAX_FILE_BYTES:
            raise FileProblem(too_large(name, len(content)))
        return content

    def open_manifest(self, name: str) -> IO[bytes]:
        member = self._places[name]
        if reason := _reason_against(member, MAX_MANIFEST_BYTES):
            raise FileProblem(f"{name} {reason}")
        try:
            return self._archive.open(member)
        except UNPACKING_ERRORS as error:
            raise FileProblem(f"{name} cannot be unpacked: {error}; make the archive again") from error

    def _refuse_by_total(self, label: str) -> None:
        """Many small files may add up to what a single one must not be."""
        total = sum(member.file_size for member in self._places.values() if not _reason_against(member, MAX_FILE_BYTES))
        own = self._source.seek(0, os.SEEK_END)
        if total > TOTAL_RATIO_APPLIES_FROM_BYTES and total > MAX_RATIO * own:
            raise FileProblem(
                f"{label} would unpack to {total / 1_000_000_000:.1f} GB, more than {MAX_RATIO} times its own size, "
                "which no photographs do; it is not read"
            )


class _Source:
    """An archive's file as zipfile reads it, with a limit to the directory: zipfile takes in all of it at once."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.is_listed = False
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        if not self.is_listed and size > MAX_DIRECTORY_BYTES:
            raise FileProblem(f"has a directory of {size / 1_000_000:.0f} MB; make several archives of it")
        content = self._file.read(size)
        if not self.is_listed and content.count(DIRECTORY_ENTRY) > MAX_MEMBERS:
            raise FileProblem(f"has more than {MAX_MEMBERS:,} files; make several archives of it")
        return content


def _reason_against(member: zipfile.ZipInfo, limit: int) -> str:
    """Why a member must not be unpacked, by what the directory says of it; empty if it may."""
    if member.flag_bits & 0x1:
        return "is encrypted; make the archive without a password"
    if member.file_size > limit:
        return too_large("", member.file_size, limit).strip()
    if member.file_size > RATIO_APPLIES_FROM_BYTES and member.file_size > MAX_RATIO * member.compress_size:
        return f"is compressed more than {MAX_RATIO}-fold, which no photograph is; it is not read"
    return ""


def _overlapping(members: list[zipfile.ZipInfo], directory_start: int) -> set[zipfile.ZipInfo]:
    """The members that reach into the next one, or into the directory.

    No program writes such archives but to make few bytes unpack to many: D. Fifield, "A better zip bomb" (2019).
    """
    ordered = sorted(members, key=lambda member: member.header_offset)
    ends = [
        # At least: the local header may have an extra field too.
        member.header_offset + LOCAL_HEADER_BYTES + len(_raw_name(member)) + member.compress_size
        for member in ordered
    ]
    starts = [member.header_offset for member in ordered[1:]] + [directory_start]
    return {member for member, end, start in zip(ordered, ends, starts, strict=True) if end > start}


def _raw_name(member: zipfile.ZipInfo) -> bytes:
    """A member's name as the archive has it."""
    return member.orig_filename.encode("utf-8" if member.flag_bits & UTF8_NAME else "cp437")


def _name_of(member: zipfile.ZipInfo) -> tuple[str, bool]:
    """A member's name, and whether it is known to be in UTF-8.

    Names without a flag are in code page 437 by the standard; macOS and others write UTF-8 without the flag.
    """
    name = member.orig_filename
    if member.flag_bits & UTF8_NAME or name.isascii():
        return name, True
    raw = _raw_name(member)
    extra = member.extra
    while len(extra) >= 4:
        number, length = struct.unpack_from("<HH", extra)
        field, extra = extra[4 : 4 + length], extra[4 + length :]
        # It holds a version, 1, and the checksum of the name it stands for, lest that was changed since.
        if number == UNICODE_PATH and field[:5] == struct.pack("<BL", 1, zlib.crc32(raw)):
            raw = field[5:]
    try:
        return raw.decode(), True
    except UnicodeDecodeError:
        return name, False


class FileFinder:
    """Finds the file a manifest means: by path, else by a basename that only one file has."""

    def __init__(self, names: Iterable[str], base: str = "") -> None:
        """``base`` is the manifest's own folder below the root: paths may be relative to either."""
        self._names = set(names)
        self._base = PurePosixPath(base)

    @cached_property
    def _by_basename(self) -> dict[str, list[str]]:
        # Not made before it is needed: most manifests give whole paths, and this takes as much memory as all the rest.
        by_basename = defaultdict(list)
        for name in sorted(self._names):
            by_basename[PurePosixPath(name).name].append(name)
        return by_basename

    def find(self, filename: str) -> str:
        """The name of the one file that ``filename`` means. Raises FileProblem if there is none, or several."""
        for candidate in (filename, str(self._base / filename)):
            if candidate in self._names:
                return candidate
        same_name = self._by_basename.get(PurePosixPath(filename).name, [])
        if len(same_name) > 1:
            raise FileProblem(f"may be any of {', '.join(same_name)}; write the whole path")
        if not same_name:
            raise NoSuchFile("no such file; correct the name or add the file")
        return same_name[0]


class RowFiles:
    """Which file each filename of a manifest means, and which files none means."""

    def __init__(self, files: ImageFiles, filenames: Iterable[str], base: str = "") -> None:
        """``base`` is the manifest's own folder among the files: paths may be relative to it."""
        self._files = files
        self._file_of: dict[str, str] = {}
        self._unclear: dict[str, str] = {}
        finder = FileFinder(files.names, base)
        first_to_mean: dict[str, str] = {}
        meant_by_several: dict[str, set[str]] = defaultdict(set)
        for filename in filenames:
            try:
                file = self._file_of[filename] = finder.find(filename)
                first = first_to_mean.setdefault(file, filename)
                if first != filename:
                    meant_by_several[file] |= {first, filename}
            except FileProblem as problem:
                hint = f" ({files.hint})" if files.hint and isinstance(problem, NoSuchFile) else ""
                self._unclear[filename] = f"{filename} in {files.label}: {problem}{hint}"
        for file, meaning_it in meant_by_several.items():
            # Two folders of the manifest, one file of that basename: it can belong to one of them only.
            for filename in meaning_it - {file}:
                others = ", ".join(sorted(meaning_it - {filename}))
                self._unclear[filename] = f"only {file} has that name, and {others} means it too; write the whole path"
        self.unused = sorted(set(files.names) - set(self._file_of.values()))

    def locate(self, filename: str) -> str:
        """The name of the file that one of the filenames means. Raises FileProblem."""
        if filename in self._unclear:
            raise FileProblem(self._unclear[filename])
        return self._file_of[filename]

    def read(self, filename: str) -> bytes:
        """The content of the file that one of the filenames means. Raises FileProblem."""
        return self._files.read(self.locate(filename))


def find_manifest(names: Iterable[str], place: str = "archive") -> str:
    """The one manifest among files: ``manifest.csv`` or ``manifest.jsonl``, or the only CSV or JSONL file.

    ``place`` is for people: what has the files. Raises FileProblem.
    """
    tables = [name for name in names if PurePosixPath(name).suffix.lower() in MANIFEST_ENDINGS]
    named = [name for name in tables if PurePosixPath(name).stem.lower() == "manifest"]
    chosen = named or tables
    if not chosen:
        raise FileProblem(
            f"The {place} has no manifest. Put a file manifest.csv or manifest.jsonl into it, beside the images."
        )
    if len(chosen) > 1:
        shown = ", ".join(chosen[:10]) + (f" and {len(chosen) - 10} more" if len(chosen) > 10 else "")
        raise FileProblem(f"The {place} has several manifests: {shown}. Keep one, or name it manifest.csv.")
    return chosen[0]


def too_large(name: str, size: int, limit: int = MAX_FILE_BYTES) -> str:
    """What to say of a file that is over the limit."""
    return f"{name} has {size / 1_000_000:.0f} MB; the limit is {limit / 1_000_000:.0f} MB"


def _open_unless_link(path: str, flags: int) -> int:
    # Without waiting: a named pipe would block until somebody writes to it.
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
