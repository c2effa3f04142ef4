"""The steps of the PyPI library `vcon` on one file, in its own environment: vcon_steps.py FILE RUNS. Prints JSON.

CPU time, best of several runs, milliseconds. `verified` is what its verify returned.
"""

import json
import logging
import sys
import time
from pathlib import Path

from vcon import Vcon

logging.disable(logging.CRITICAL)


def best(action, runs, prepare=lambda: ()):
    times = []
    for _ in range(runs):
        prepared = prepare()
        start = time.process_time()
        result = action(*prepared)
        times.append(time.process_time() - start)
    return round(min(times) * 1_000, 1), result


def main():
    text = Path(sys.argv[1]).read_text(encoding="utf-8")
    runs = int(sys.argv[2])
    private, public = Vcon.generate_key_pair()
    found = {}
    found["parse"], vcon = best(lambda: Vcon.build_from_json(text), runs)
    found["check"], (valid, errors) = best(vcon.is_valid, runs)
    found["sign"], _ = best(lambda one: one.sign(private), runs, lambda: (Vcon.build_from_json(text),))
    signed = Vcon.build_from_json(text)
    signed.sign(private)
    found["verify"], verified = best(lambda: signed.verify(public), runs)
    found["write"], _ = best(signed.dumps, runs)
    print(json.dumps({**found, "valid": valid, "errors": len(errors), "verified": verified}))


if __name__ == "__main__":
    main()
