"""The files an import reads: a folder or a ZIP archive behind one interface. Pure: no Django.

Members of an archive are read one at a time into memory and never written to a path of the archive's choosing.
"""

import lzma
import os
import stat
import struct
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import IO, Protocol

from imagedb.manifest import normalise_path

MAX_FILE_BYTES = 64 * 1024 * 1024
# Deflate does up to 1,030:1; an uncompressed bitmap of a photograph reaches about 2:1. Small files may do as they like.
MAX_RATIO = 100
RATIO_APPLIES_FROM_BYTES = 1024 * 1024

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

    def read(self, name: str) -> bytes:
        """The bytes of one of ``names``. Raises FileProblem."""
        ...


def is_junk(name: str) -> bool:
    """Whether an operating system put the file there: __MACOSX/._a.jpg, .DS_Store, Thumbs.db."""
    path = PurePosixPath(name)
    return bool(JUNK_FOLDERS & set(path.parts)) or path.name.lower() in JUNK_NAMES or path.name.startswith("._")


class FolderFiles:
    """The files below a folder. Links are refused: they may lead to any file of the machine."""

    def __init__(self, root: Path, manifest: Path | None = None) -> None:
        """A ``manifest`` that lies among the images is not one of them."""
        self.label = f"the folder {root}"
        self.refused: list[str] = []
        self.junk_count = 0
        self._paths: dict[str, Path] = {}
        manifest_path = None if manifest is None else os.path.realpath(manifest)
        for folder, subfolders, files in os.walk(root):
            linked = [name for name in subfolders if (Path(folder) / name).is_symlink()]
            for file in sorted(files + linked):
                path = Path(folder) / file
                if os.path.realpath(path) != manifest_path:
                    self._add(path, path.relative_to(root).as_posix())
        self.names = sorted(self._paths)

    def _add(self, path: Path, relative: str) -> None:
        try:
            name = normalise_path(relative)
        except ValueError:
            self.refused.append(f"{path.name!r} has a name that no manifest can give")
            return
        if is_junk(name):
            self.junk_count += 1
        elif path.is_symlink():
            self.refused.append(f"{name} is a link; put the file itself there")
        elif name in self._paths:
            self.refused.append(f"{name} is in the folder twice, written differently; the first was taken")
        else:
            self._paths[name] = path

    def read(self, name: str) -> bytes:
        path = self._paths[name]
        try:
            # Not even if it has become a link since the folder was read.
            with open(path, "rb", opener=_open_unless_link) as file:
                size = os.fstat(file.fileno()).st_size
                if size > MAX_FILE_BYTES:
                    raise FileProblem(_too_large(name, size))
                return file.read()
        except OSError as error:
            raise FileProblem(f"{name} cannot be read: {error.strerror or error}") from error


class ArchiveFiles:
    """The members of a ZIP archive. Raises FileProblem if it is none."""

    def __init__(self, file: Path | IO[bytes], label: str) -> None:
        self.label = f"the archive {label}"
        self.refused: list[str] = []
        self.junk_count = 0
        self._members: dict[str, zipfile.ZipInfo] = {}
        try:
            self._archive = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise FileProblem(f"{label} is not a ZIP archive, or is damaged ({error})") from error
        for member in self._archive.infolist():
            if not member.is_dir():
                self._add(member)
        self.names = sorted(self._members)

    def _add(self, member: zipfile.ZipInfo) -> None:
        try:
            name = normalise_path(member.filename)
        except ValueError:
            self.refused.append(f"{member.filename!r} leads out of the archive")
            return
        if is_junk(name):
            self.junk_count += 1
        elif stat.S_ISLNK(member.external_attr >> 16):
            self.refused.append(f"{name} is a link")
        elif name in self._members:
            self.refused.append(f"{name} is in the archive twice; the first was taken")
        else:
            self._members[name] = member

    def read(self, name: str) -> bytes:
        member = self._members[name]
        if member.flag_bits & 0x1:
            raise FileProblem(f"{name} is encrypted; make the archive without a password")
        if member.file_size > MAX_FILE_BYTES:
            raise FileProblem(_too_large(name, member.file_size))
        if member.file_size > RATIO_APPLIES_FROM_BYTES and member.file_size > MAX_RATIO * member.compress_size:
            raise FileProblem(
                f"{name} is compressed more than {MAX_RATIO}-fold, which no photograph is; it is not read"
            )
        try:
            with self._archive.open(member) as stream:
                # One byte more than allowed: the size in the archive's directory is only a claim.
                content = stream.read(MAX_FILE_BYTES + 1)
        except UNPACKING_ERRORS as error:
            raise FileProblem(f"{name} cannot be unpacked: {error}; make the archive again") from error
        if len(content) > MAX_FILE_BYTES:
            raise FileProblem(_too_large(name, len(content)))
        return content


class FileFinder:
    """Finds the file a manifest means: by path, else by a basename that only one file has."""

    def __init__(self, names: Iterable[str], base: str = "") -> None:
        """``base`` is the manifest's own folder below the root: paths may be relative to either."""
        self._names = set(names)
        self._base = PurePosixPath(base)
        self._by_basename: dict[str, list[str]] = defaultdict(list)
        for name in sorted(self._names):
            self._by_basename[PurePosixPath(name).name].append(name)

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
        filenames_of: dict[str, set[str]] = defaultdict(set)
        for filename in filenames:
            try:
                self._file_of[filename] = finder.find(filename)
                filenames_of[self._file_of[filename]].add(filename)
            except FileProblem as problem:
                self._unclear[filename] = f"{filename} in {files.label}: {problem}"
        for file, meaning_it in filenames_of.items():
            # Two folders of the manifest, one file of that basename: it can belong to one of them only.
            for filename in meaning_it - {file} if len(meaning_it) > 1 else ():
                others = ", ".join(sorted(meaning_it - {filename}))
                self._unclear[filename] = f"only {file} has that name, and {others} means it too; write the whole path"
        self.unused = sorted(set(files.names) - set(self._file_of.values()))

    def read(self, filename: str) -> bytes:
        """The content of the file that one of the filenames means. Raises FileProblem."""
        if filename in self._unclear:
            raise FileProblem(self._unclear[filename])
        return self._files.read(self._file_of[filename])


def find_manifest(names: Iterable[str]) -> str:
    """The one manifest of an archive: its ``manifest.csv``, or its only CSV file. Raises FileProblem."""
    tables = [name for name in names if name.lower().endswith(".csv")]
    named = [name for name in tables if PurePosixPath(name).name.lower() == "manifest.csv"]
    chosen = named or tables
    if not chosen:
        raise FileProblem("The archive has no manifest. Put a file manifest.csv into it, beside the images.")
    if len(chosen) > 1:
        raise FileProblem(f"The archive has several manifests: {', '.join(chosen)}. Keep one, or name it manifest.csv.")
    return chosen[0]


def _open_unless_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW)


def _too_large(name: str, size: int) -> str:
    return f"{name} has {size / 1_000_000:.0f} MB; the limit is {MAX_FILE_BYTES / 1_000_000:.0f} MB"
