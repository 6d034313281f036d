"""Make the virtual environment and install into it. Runs before anything is installed: standard library only.

    python3 scooter_site/demo/bootstrap.py [--free-port PORT] REQUIREMENTS.txt

Installs with uv and with hashes, and only when the requirements changed since the last time.
"""

import argparse
import hashlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
ENVIRONMENT = ROOT / ".venv"
PYTHON = ENVIRONMENT / "bin" / "python"
UV_IS_PINNED_IN = ROOT / "requirements-dev.txt"


def require_free_port(port: int) -> None:
    """Exit with a message when the port of 127.0.0.1 cannot be listened on."""
    elsewhere = "Choose another: PORT=8001 make demo"
    with socket.socket() as caller, socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            # Asked first, because macOS lets a second server listen beside the first.
            if caller.connect_ex(("127.0.0.1", port)) == 0:
                sys.exit(f"Port {port} is taken by another program. {elsewhere}")
            listener.bind(("127.0.0.1", port))
        except (OSError, OverflowError) as error:
            sys.exit(f"Port {port} cannot be used: {error}. {elsewhere}")


def make_environment() -> None:
    """Create the virtual environment unless a working one is there."""
    if PYTHON.exists() and _succeeds([PYTHON, "-c", "import pip"]):
        return
    if not _succeeds([sys.executable, "-c", "import ensurepip"]):  # Debian leaves it out of python3
        package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
        if not (shutil.which("apt-get") and os.geteuid() == 0):
            sys.exit(f"{sys.executable} cannot make virtual environments. On Debian: sudo apt-get install {package}")
        _run(["apt-get", "update", "-qq"])
        _run(["apt-get", "install", "-qq", "-y", "--no-install-recommends", package])
    _say(f"Making {ENVIRONMENT.name} with Python {sys.version.split()[0]}")
    _run([sys.executable, "-m", "venv", "--clear", ENVIRONMENT])


def install(requirements: Path) -> None:
    """Install a compiled requirements file, unless exactly this one has been installed before."""
    stamp = ENVIRONMENT / f".installed-{requirements.stem}"
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == digest:
        return
    _say(f"Installing {requirements.name}")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as only_uv:
        only_uv.write(pinned_lines("uv", UV_IS_PINNED_IN.read_text()))
        only_uv.flush()
        _run([PYTHON, "-m", "pip", "install", "--quiet", "--require-hashes", "-r", only_uv.name])
    # "install", not "sync": the demo must not remove what the tests installed.
    _run([PYTHON, "-m", "uv", "pip", "install", "--quiet", "--python", PYTHON, "--require-hashes", "-r", requirements])
    stamp.write_text(digest)


def pinned_lines(package: str, requirements: str) -> str:
    """The lines of a compiled requirements file that pin one package and give its hashes."""
    block: list = []
    for line in requirements.splitlines():
        if line.startswith(f"{package}=="):
            block = [line]
        elif block and line.startswith("    --hash"):
            block.append(line)
        elif block:
            break
    return "\n".join(block).rstrip("\\ ") + "\n"


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _succeeds(command: list) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0  # noqa: S603 - our own commands


def _run(command: list) -> None:
    try:
        subprocess.run(command, check=True)  # noqa: S603 - our own commands
    except subprocess.CalledProcessError as error:
        sys.exit(f"Failed with status {error.returncode}: {' '.join(str(part) for part in command)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("requirements", type=Path)
    parser.add_argument("--free-port", type=int, help="First make sure that this port is free.")
    arguments = parser.parse_args()
    if arguments.free_port is not None:
        require_free_port(arguments.free_port)
    make_environment()
    install(arguments.requirements.resolve())


if __name__ == "__main__":
    main()
