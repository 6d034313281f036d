"""Run the stand-in by itself: python -m scooter_site.demo.fake_prolific --port 8010"""

import argparse
import signal
import sys

from scooter_site.demo.fake_prolific.server import FakeProlific
from scooter_site.demo.fake_prolific.world import TOKEN, WORKSPACE_ID


def main() -> None:
    parser = argparse.ArgumentParser(description="A stand-in for Prolific, in memory.")
    parser.add_argument("--port", type=int, default=8010)
    fake = FakeProlific(port=parser.parse_args().port)
    print(f"Stand-in for Prolific at {fake.url}: token {TOKEN}, workspace {WORKSPACE_ID}", flush=True)  # noqa: T201
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        fake.http.serve_forever()
    except KeyboardInterrupt:
        fake.http.server_close()


main()
