"""How fast an archive of images is sent, compared with ``tar`` over the same files, and in how much memory.

    python bench/archive.py

Starts the site with gunicorn on an empty SQLite database in a temporary folder, as in production but with one worker
process, and downloads with curl. Runs of tar and of the site alternate, with all files in the page cache; medians
count. docs/downloads.md has the figures.
"""

import hashlib
import io
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
RUNS = 9
# Sets by class index: the first is measured against tar, all for memory.
SETS = {1: 1_000, 0: 100, 2: 10_000}
MEASURED_CLASS = 1


def main() -> None:
    """Set the site up, measure, print."""
    with tempfile.TemporaryDirectory(prefix="bench-archive-") as folder:
        port = free_port()
        os.environ.update(
            DEBUG="off",
            SECRET_KEY="only-for-this-measurement",
            ALLOWED_HOSTS="127.0.0.1",
            HTTPS="off",
            ALLOW_SQLITE="on",
            DATABASE_URL=f"sqlite:///{folder}/bench.sqlite3",
            MEDIA_ROOT=f"{folder}/media",
            STATIC_ROOT=f"{folder}/static",
            CELERY_TASK_ALWAYS_EAGER="on",
            THROTTLE_FILES="off",
            LOG_LEVEL="WARNING",
            WEB_WORKERS="1",
            PORT=str(port),
        )
        manage = [sys.executable, "manage.py"]
        subprocess.run([*manage, "migrate", "-v0"], cwd=PROJECT, check=True)
        subprocess.run([*manage, "collectstatic", "-v0", "--noinput"], cwd=PROJECT, check=True)
        stored = make_images(Path(folder) / "media" / "protected")
        command = [sys.executable, "-m", "gunicorn", "-c", "scooter_site/gunicorn_config.py", "scooter_site.wsgi"]
        with (Path(folder) / "web.log").open("w") as log:
            server = subprocess.Popen(command, cwd=PROJECT, stdout=log, stderr=log)
        try:
            measure(f"http://127.0.0.1:{port}/api/v1/images/archive/", server.pid, Path(folder), stored)
        finally:
            server.terminate()
            server.wait(timeout=30)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def make_images(root: Path) -> dict[str, list[str]]:
    """Write the files and rows of all sets. Returns the names of the measured files by part.

    The larger set for memory uses the files of the smaller ones again, with made-up digests: sending checks sizes only.
    """
    sys.path.insert(0, str(PROJECT))
    os.environ["DJANGO_SETTINGS_MODULE"] = "scooter_site.settings"
    import django

    django.setup()
    import numpy as np
    from PIL import Image as Picture

    from imagedb.models import Image, ImageClass

    pixels = np.random.default_rng(1).integers(0, 256, (375, 500, 3), dtype=np.uint8)
    noise = Picture.fromarray(pixels).resize((250, 188), Picture.Resampling.BOX).resize((500, 375))
    contents = {}
    for part, file_format, options in (("original", "JPEG", {"quality": 88}), ("rendition", "PNG", {})):
        buffer = io.BytesIO()
        noise.save(buffer, file_format, **options)
        contents[part] = buffer.getvalue()
        print(f"{part}s: {file_format} of {len(contents[part]):,} bytes")
    endings = {"original": ".jpg", "rendition": ".png"}
    files: list[dict[str, object]] = []
    for number in range(max(SETS[MEASURED_CLASS], SETS[0])):
        file: dict[str, object] = {}
        for part, content in contents.items():
            # No two files are the same: some bytes behind the end of the picture.
            own = content + number.to_bytes(8, "big")
            name = f"{part}/{number % 256:02x}/{hashlib.md5(own, usedforsecurity=False).hexdigest()}{endings[part]}"
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(own)
            file |= {part: name, f"{part}_bytes": len(own), f"{part}_crc32": zlib.crc32(own)}
            file[f"{part}_sha256"] = hashlib.sha256(own).hexdigest()
        files.append(file)
    rows = []
    for class_index, count in SETS.items():
        image_class = ImageClass.objects.get(index=class_index)
        for number in range(count):
            digest = hashlib.sha256(f"{class_index} {number}".encode()).hexdigest()
            row = {**files[number % len(files)], "thumbnail": "thumbnail/none.jpg"}
            if class_index != MEASURED_CLASS:
                row["original_sha256"] = digest
            rows.append(
                Image(
                    kind="clean",
                    image_class=image_class,
                    original_filename=f"{number}.jpg",
                    original_format="JPEG",
                    original_mode="RGB",
                    width=500,
                    height=375,
                    visibility="public",
                    licence="CC0-1.0",
                    attribution="Noise",
                    **row,
                )
            )
    Image.objects.bulk_create(rows, batch_size=500)
    return {part: [str(file[part]) for file in files[: SETS[MEASURED_CLASS]]] for part in contents}


def measure(address: str, server: int, folder: Path, stored: dict[str, list[str]]) -> None:
    """Throughput against tar for both parts, then memory by the number of entries."""
    wait_for(address)
    root = folder / "media" / "protected"
    for part, names in stored.items():
        (folder / "names").write_text("\n".join(names))
        megabytes = sum((root / name).stat().st_size for name in names) / 1e6
        seconds: dict[str, list[float]] = {"tar": [], "zip": [], "webdataset": []}
        for _ in range(RUNS + 1):  # the first run of each only warms the cache
            seconds["tar"].append(timed(f"tar cf - -C {root} -T {folder}/names | cat > /dev/null"))
            for kind in ("zip", "webdataset"):
                query = f"class_index={MEASURED_CLASS}&files={part}&archive_type={kind}"
                seconds[kind].append(timed(f"curl --fail --silent --output /dev/null '{address}?{query}'"))
        median = {kind: statistics.median(times[1:]) for kind, times in seconds.items()}
        print(f"\n{len(names):,} {part}s, {megabytes:.0f} MB; medians of {RUNS} alternating runs")
        for kind, time_taken in median.items():
            share = f"  {median['tar'] / time_taken:4.0%} of tar" if kind != "tar" else ""
            print(f"  {kind:10} {time_taken * 1000:5.0f} ms  {megabytes / time_taken:5.0f} MB/s{share}")
    print("\nLargest resident memory of the worker process while it sends")
    worker = children(server)[0]
    for class_index, count in sorted(SETS.items(), key=lambda item: item[1]):
        for kind in ("zip", "webdataset"):
            Path(f"/proc/{worker}/clear_refs").write_text("5")  # forget the largest so far
            timed(f"curl --fail --silent --output /dev/null '{address}?class_index={class_index}&archive_type={kind}'")
            print(f"  {count:6,} images  {kind:10} {largest_memory(worker) / 1024:4.0f} MB")


def timed(command: str) -> float:
    start = time.perf_counter()
    subprocess.run(["bash", "-o", "pipefail", "-c", command], check=True)
    return time.perf_counter() - start


def wait_for(address: str) -> None:
    for _ in range(100):
        if (
            subprocess.run(["curl", "--silent", "--head", "--output", "/dev/null", address], check=False).returncode
            == 0
        ):
            return
        time.sleep(0.2)
    raise SystemExit("the site does not start")


def children(process: int) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def largest_memory(process: int) -> int:
    """In KiB."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


if __name__ == "__main__":
    main()
