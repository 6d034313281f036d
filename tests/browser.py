"""The Chromium of the browser tests: the system's, or else Playwright's own. `python -m tests.browser` installs it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

DEBIAN_CHROMIUM = Path("/usr/bin/chromium")


def chromium_options() -> dict[str, Any]:
    """Keyword arguments of ``playwright.chromium.launch``."""
    options: dict[str, Any] = {}
    if DEBIAN_CHROMIUM.exists():
        options["executable_path"] = str(DEBIAN_CHROMIUM)
    if os.geteuid() == 0:
        options["args"] = ["--no-sandbox"]  # Chromium's sandbox refuses to run as root
    return options


def is_debian() -> bool:
    release = Path("/etc/os-release")
    return release.exists() and "ID=debian" in release.read_text().splitlines()


def install() -> None:
    """Install Chromium where it is missing: from Debian as root, else Playwright's own build."""
    if DEBIAN_CHROMIUM.exists():
        return
    if os.geteuid() == 0 and is_debian() and shutil.which("apt-get"):
        subprocess.run(["apt-get", "update", "-qq"], check=True)
        subprocess.run(["apt-get", "install", "-qq", "-y", "--no-install-recommends", "chromium"], check=True)
        return
    with_system_libraries = ["--with-deps"] if os.geteuid() == 0 and sys.platform == "linux" else []
    subprocess.run([sys.executable, "-m", "playwright", "install", *with_system_libraries, "chromium"], check=True)


if __name__ == "__main__":
    install()
