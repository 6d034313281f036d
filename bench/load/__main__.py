"""Many participants at once, through the whole study and with its images, held against oTree.

    python -m bench.load --peer ../shared/bench/otree
    python -m bench.load --peer ../shared/bench/otree --kill-every 20 --seconds 120

``--peer`` is the folder with the load generator and with oTree's study; its README says how the environment that
``--peer-venv`` names is made. Both sides run on one PostgreSQL that waits for the disk, one after the other, each on
its production server, and share the processor with the generator, which sends the next answer as soon as it has the
last one's. Afterwards every acknowledged answer is looked up in the database.

With ``--kill-every`` only Scooter runs: its web server is killed (SIGKILL) and started anew all the while, and
participants come back by their links. Exits with 1 when a bar is missed.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.load.peer import otree
from bench.load.scooter_adapter import UNCOUNTED
from bench.load.site import PROJECT, Server, make_durable, new_database, scooter
from tests.services.postgresql import postgresql

ADAPTER = Path(__file__).resolve().parent / "scooter_adapter.py"
MOST_PARTICIPANTS = 500  # the generator's own bound
RETURNING_SECONDS = 60
# The bars, as shares or multiples of oTree's figures.
CPU_SHARE, CPU_SHARE_STRETCH, RATE_MULTIPLE, P95_SHARE = 1 / 6, 1 / 10, 8, 1 / 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", type=Path, required=True, help="folder of loadgen.py and oTree's project")
    parser.add_argument("--peer-venv", type=Path, default=Path("otree_venv"), help="the environment that has oTree")
    parser.add_argument("--peer-seconds", type=float, default=1500, help="at most; complete runs take ten minutes")
    parser.add_argument("--participants", type=int, default=100, help="at the same time")
    parser.add_argument("--no-peer", action="store_true", help="Scooter only")
    parser.add_argument("--kill-every", type=float, help="kill the web server after every so many seconds")
    parser.add_argument("--seconds", type=float, default=120, help="with --kill-every: for so long")
    options = parser.parse_args()
    options.peer = options.peer.resolve()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-load-")))
        address = stack.enter_context(postgresql())
        postgres = make_durable(address)
        ok = kill_run(options, address, folder) if options.kill_every else compare(options, address, postgres, folder)
    sys.exit(0 if ok else 1)


def compare(options: argparse.Namespace, address: str, postgres: int, folder: Path) -> bool:
    """Both sides, one after the other; whether the bars are kept."""
    ours_folder, theirs_folder = folder / "scooter", folder / "otree"
    ours_folder.mkdir()
    theirs_folder.mkdir()
    database = new_database(address, "scooter")
    with scooter(database, ours_folder, places=options.participants) as (server, worker):
        watched = {"server": server.pid, "postgres": postgres, "worker": worker}
        generator = start_generator(options, server, ADAPTER, ours_folder, watched=watched, database=database)
        ours = result(generator, ours_folder)
    tell("Scooter", ours)
    ok = is_whole(ours)
    if options.no_peer:
        return ok
    with otree(options.peer, options.peer_venv.absolute(), new_database(address, "otree"), theirs_folder) as server:
        adapter = options.peer / "adapters" / "otree_adapter.py"
        watched = {"server": server.pid, "postgres": postgres}
        generator = start_generator(
            options, server, adapter, theirs_folder, watched=watched, seconds=options.peer_seconds
        )
        theirs = result(generator, theirs_folder)
    tell("oTree", theirs)
    return judge(ours, theirs) and ok


def kill_run(options: argparse.Namespace, address: str, folder: Path) -> bool:
    """Scooter alone, killed again and again; whether every acknowledged answer is there once and as it was given."""
    database = new_database(address, "scooter")
    with scooter(database, folder, places=MOST_PARTICIPANTS) as (server, _):
        generator = start_generator(
            options,
            server,
            ADAPTER,
            folder,
            database=database,
            seconds=options.seconds + options.kill_every,
            more=["--participants", str(MOST_PARTICIPANTS), "--recover", str(RETURNING_SECONDS)],
        )
        kills = 0
        start = time.monotonic()
        while (kills + 1) * options.kill_every <= options.seconds:
            time.sleep(max(0, start + (kills + 1) * options.kill_every - time.monotonic()))
            server.kill()
            kills += 1
            killed = time.monotonic()
            server.start()
            print(
                f"  killed after {killed - start:.0f} s, took connections again {time.monotonic() - killed:.1f} s later"
            )
        ours = result(generator, folder)
    tell(f"Scooter, killed {kills} times", ours)
    return is_whole(ours)


def start_generator(
    options: argparse.Namespace,
    server: Server,
    adapter: Path,
    folder: Path,
    *,
    watched: dict[str, int] | None = None,
    database: str = "",
    seconds: float = 900,
    more: list[str] | None = None,
) -> subprocess.Popen[bytes]:
    """Let the participants in."""
    command = [sys.executable, str(options.peer / "loadgen.py"), "--adapter", str(adapter), "--base", server.url]
    command += ["-n", str(options.participants), "--max-seconds", str(seconds), "--max-requests", "2000000"]
    command += ["--timeout", "120", "--ledger", str(folder / "ledger"), "--out", str(folder / "result")]
    for name, pid in (watched or {}).items():
        command += ["--watch", f"{name}={pid}"]
    environment = {**os.environ, "LOAD_DATABASE": database, "OTREE_REST_KEY": "bench"}
    with (folder / "generator.log").open("w") as log:
        return subprocess.Popen([*command, *(more or [])], cwd=PROJECT, env=environment, stdout=log, stderr=log)


def result(generator: subprocess.Popen[bytes], folder: Path) -> dict[str, Any]:
    """What the generator found, with the submissions that both sides have."""
    if generator.wait():
        raise SystemExit((folder / "generator.log").read_text()[-3000:])
    found = json.loads((folder / "result").read_text().splitlines()[-1])
    rows = map(json.loads, (folder / "ledger").read_text().splitlines())
    found["counted"] = sum(row["ack"] and not row["k"].startswith(UNCOUNTED) for row in rows)
    return found


def cpu_ms(found: dict[str, Any], *names: str) -> float:
    """Processor time for one submission."""
    return 1000 * sum(found["processes"][name]["cpu_s"] for name in names) / found["counted"]


def tell(name: str, found: dict[str, Any]) -> None:
    """Print a side's figures."""
    stored = found["verify"]
    print(f"\n{name}: {found['completed']} of {found['started']} complete in {found['wall_s']:.0f} s")
    print(f"  {found['counted']:,} submissions, {found['counted'] / found['wall_s']:.1f} per second")
    print(f"  {found['requests']:,} requests, {found['mb_in']:,.0f} MB; errors: {found['error_kinds'] or 'none'}")
    for sample in found["error_samples"][:5]:
        print(f"    {sample}")
    for what, times in sorted(found["latency_ms"].items()):
        if times is None:  # nothing of the kind
            continue
        print(f"  {what:12} ms: median {times['p50']:.0f}, p95 {times['p95']:.0f}, p99 {times['p99']:.0f}")
    for process, used in found["processes"].items():
        if "cpu_s" in used:
            each = 1000 * used["cpu_s"] / found["counted"]
            print(f"  {process:8} {each:6.2f} ms CPU per submission, {used['rss_max_mb']:.0f} MB")
    print(
        f"  generator {found['generator_cpu_pct_of_one_core']:.0f} % of a core, "
        f"others {found['processes']['machine']['other_cpu_pct_of_one_core']:.0f} %"
    )
    print(
        f"  acknowledged {stored['acknowledged']:,}: lost {stored['lost']}, altered {stored['wrong_value']}, "
        f"duplicated {stored['duplicated']}, asked for again {stored['acknowledged_twice']}, "
        f"never sent {stored['stored_never_sent']}; "
        f"stored but not acknowledged {stored['stored_though_not_acknowledged']}"
    )


def is_whole(found: dict[str, Any]) -> bool:
    """Nothing lost, altered or stored twice, and nothing there that nobody sent."""
    stored = found["verify"]
    bad = ("lost", "wrong_value", "duplicated", "acknowledged_twice", "stored_never_sent")
    return stored["acknowledged"] > 0 and not any(stored[name] for name in bad)


def judge(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """Print the ratios; whether all bars are kept."""
    rate = [found["counted"] / found["wall_s"] for found in (ours, theirs)]
    p95 = [found["latency_ms"]["submit_next"]["p95"] for found in (ours, theirs)]
    cpu = [cpu_ms(found, "server") for found in (ours, theirs)]
    with_database = [cpu_ms(found, "server", "postgres") for found in (ours, theirs)]
    lines = [
        ("server CPU, ms per submission", cpu, CPU_SHARE, cpu[0] / cpu[1] <= CPU_SHARE),
        ("  the same with PostgreSQL's", with_database, None, True),
        ("submissions per second", rate, RATE_MULTIPLE, rate[0] / rate[1] >= RATE_MULTIPLE),
        ("p95 until the next page, ms", p95, P95_SHARE, p95[0] / p95[1] <= P95_SHARE),
    ]
    print(f"\n{'':32}{'Scooter':>10}{'oTree':>10}{'ratio':>9}{'bar':>8}")
    for what, (mine, other), bar, kept in lines:
        shown = "" if bar is None else f"{bar:8.3f}  {'kept' if kept else 'MISSED'}"
        print(f"{what:32}{mine:10.1f}{other:10.1f}{mine / other:9.3f}{shown}")
    print(f"Server CPU: one {cpu[1] / cpu[0]:.1f}th of oTree's; the stretch is one {1 / CPU_SHARE_STRETCH:.0f}th.")
    return all(kept for *_, kept in lines)


if __name__ == "__main__":
    main()
