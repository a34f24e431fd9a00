# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Compare handlings."""
import sys, tempfile, time
from pathlib import Path
from demo.handlings import HANDLINGS
from demo.plan import LONG, SHORT
from demo.run import run
t=time.time()
with tempfile.TemporaryDirectory(prefix="demo-") as d:
    r=run(HANDLINGS[sys.argv[1]], LONG if sys.argv[2]=="long" else SHORT._replace(notice=5), Path(d), lambda: print("ready", time.time()-t))
    r.write(Path("/tmp/wt/demo-%s.json"%sys.argv[1]))
print(time.time()-t)
print(len(r.answers), len(r.failed), r.slowest, r.percentile(.99), r.acknowledged, r.stored, r.lost, r.out_of_pool, r.errors)
for p in r.phases: print(p)
print(r.problems()[:20])
