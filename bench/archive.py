"""How fast an archive of images is sent, compared with ``tar`` over the same files, and in how much memory.

    python -m bench.archive

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
KINDS = ("zip", "webdataset")


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
    os.environ["DJANGO_SETTINGS_MODULE"] = "scooter_site.settings"
    import django

    django.setup()
    import numpy as np
    from PIL import Image as Picture

    from imagedb.models import Attack, Image, ImageClass, Prediction, TargetModel

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
    attack = Attack.objects.create(name="Attack", slug="attack")
    model = TargetModel.objects.create(name="Model", slug="model")
    shared = {
        "original_format": "JPEG",
        "original_mode": "RGB",
        "width": 500,
        "height": 375,
        "visibility": "public",
        "licence": "CC0-1.0",
        "attribution": "Noise",
        "thumbnail": "thumbnail/none.jpg",
    }
    distances = {"linf": 8, "l2": 4.123456789, "changed_share": 0.987654321, "ssim": 0.954321, "ciede2000": 1.23456789}
    for class_index, count in SETS.items():
        image_class = ImageClass.objects.get(index=class_index)
        other_class = ImageClass.objects.get(index=class_index + 3)
        rows = []
        for number in range(count):
            row = {**shared, **files[number % len(files)], "image_class": image_class}
            if class_index != MEASURED_CLASS:
                row["original_sha256"] = hashlib.sha256(f"{class_index} {number}".encode()).hexdigest()
            rows.append(Image(**row, kind="clean", original_filename=f"{number}.jpg"))
        # Half are clean images, and half are what was made from them.
        clean = Image.objects.bulk_create(rows[::2], batch_size=500)
        for image, source in zip(rows[1::2], clean, strict=True):
            image.kind, image.source, image.attack, image.target_model = "modified", source, attack, model
            image.comparison = "same_size"
            for name, value in distances.items():
                setattr(image, name, value)
        modified = Image.objects.bulk_create(rows[1::2], batch_size=500)
        Prediction.objects.bulk_create(
            [
                Prediction(image=image, target_model=model, predicted_class=answer, confidence=0.987654321)
                for images, answer in ((clean, image_class), (modified, other_class))
                for image in images
            ],
            batch_size=500,
        )
    return {part: [str(file[part]) for file in files[: SETS[MEASURED_CLASS]]] for part in contents}


def measure(address: str, server: int, folder: Path, stored: dict[str, list[str]]) -> None:
    """Throughput against tar for both parts, then memory by the number of entries."""
    wait_for(address)
    root = folder / "media" / "protected"
    for part, names in stored.items():
        (folder / "names").write_text("\n".join(names))
        megabytes = sum((root / name).stat().st_size for name in names) / 1e6
        # What tar is held against: for a ZIP the images, for WebDataset its files: images, descriptions, classes.
        address_of = {
            kind: f"{address}?class_index={MEASURED_CLASS}&files={part}&archive_type={kind}" for kind in KINDS
        }
        unpacked = folder / f"unpacked-{part}"
        unpacked.mkdir()
        timed(f"curl --fail --silent '{address_of['webdataset']}' | tar xf - -C {unpacked}")
        commands = {
            "tar of the images": f"tar cf - -C {root} -T {folder}/names | cat > /dev/null",
            "ZIP": f"curl --fail --silent --output /dev/null '{address_of['zip']}'",
            "tar of the samples": f"tar cf - -C {unpacked} . | cat > /dev/null",
            "WebDataset": f"curl --fail --silent --output /dev/null '{address_of['webdataset']}'",
        }
        seconds: dict[str, list[float]] = {what: [] for what in commands}
        for _ in range(RUNS + 1):  # the first run of each only warms the cache
            for what, command in commands.items():
                seconds[what].append(timed(command))
        median = {what: statistics.median(times[1:]) for what, times in seconds.items()}
        print(f"\n{len(names):,} {part}s, {megabytes:.0f} MB; medians of {RUNS} alternating runs")
        for what, time_taken in median.items():
            print(f"  {what:18} {time_taken * 1000:5.0f} ms  {megabytes / time_taken:5.0f} MB/s")
        print(f"  ZIP        {median['tar of the images'] / median['ZIP']:.0%} of tar of the images")
        for what in ("samples", "images"):
            print(f"  WebDataset {median[f'tar of the {what}'] / median['WebDataset']:.0%} of tar of the {what}")
    print("\nLargest resident memory of the worker process while it sends")
    worker = children(server)[0]
    for class_index, count in sorted(SETS.items(), key=lambda item: item[1]):
        for kind in KINDS:
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
