"""Changes of routes: how many a second, and how soon each is in force, at rest and in a storm."""
import threading
import time

from causeway import Router
from network import CheckError, ROUTER, peer, run, wait_until
from table import MODES, PORTS, TABLE_LIMIT_S, median, prefixes
from traffic import Datagrams

# A prefix whose way changes again and again while datagrams go there.
CHANGED = "10.85.0.0/24"
# One that is not in force when the next is asked for counts as this late, and is not well.
CHANGES, CHANGE_EVERY_S = 8, 2
DATAGRAMS_PER_SECOND = 1000


def check(settings, folder):
    """A row for each mode; no daemon is needed for it."""
    names = list(prefixes(settings.routes))
    for mode in MODES:
        yield in_force(folder, mode, names, settings.binary)


def in_force(folder, mode, names, binary):
    """How long datagrams still go the old way after a route has changed, at rest and in a storm of changes."""
    for name in ("b", "c"):
        run("ip", "-n", peer(name), "addr", "add", "10.85.0.1/32", "dev", "lo", fail=False)
    router = Router(binary, folder, mode, PORTS)
    row = {"mode": mode, "routes": len(names)}
    try:
        # Neighbours are known before it begins.
        for number in (2, 3):
            run("ip", "netns", "exec", ROUTER, "bash", "-c", f"echo > /dev/udp/10.79.{number}.2/9", fail=False)
        row["rest_ms"], row["rest_lost"] = changes(folder)
        batches = {word: folder / f"batch.{word}" for word in ("add", "del")}
        for word, file in batches.items():
            file.write_text("".join(f"route {word} {name}/24 via 10.79.1.2 dev to-a\n" for name in names))
        seconds = {}

        def storm():
            for word, file in batches.items():
                began = time.monotonic()
                run("ip", "-n", ROUTER, "-batch", file, limit_s=TABLE_LIMIT_S)
                seconds[word] = time.monotonic() - began

        thread = threading.Thread(target=storm)
        thread.start()
        row["storm_ms"], row["storm_lost"] = changes(folder)
        thread.join()
        if len(seconds) < len(batches):
            raise CheckError("the storm of changes did not end well")
        row["changes_per_second"] = round(2 * len(names) / sum(seconds.values()))
        row["behind_s"] = None
        if router.process:
            began = time.monotonic()
            wait_until("the table to be empty", lambda: router.read("forward.lookup", names[-1][:-1] + "1") == "none", 60)
            row["behind_s"] = round(time.monotonic() - began, 2)
    finally:
        router.end()
        run("ip", "-n", ROUTER, "route", "flush", "root", CHANGED, fail=False)
    # The aims of the page are times of a quiet machine; at rest ten times those are asserted.
    row["ok"] = max(row["rest_ms"]) < 500 and max(row["storm_ms"]) < 0.95e3 * CHANGE_EVERY_S
    rest, storm = (f"{median(row[what]):.1f} ms (worst {max(row[what]):.1f})" for what in ("rest_ms", "storm_ms"))
    print(f"    {mode:26} in force after {rest}; in a storm of {row['changes_per_second']} changes a second {storm}", flush=True)
    return row


def changes(folder):
    """For each change of the way from b to c or back: milliseconds from when the kernel had it until the last datagram
    was sent that went the old way. And how many datagrams were lost.
    """
    ways = {"b": "10.79.2.2", "c": "10.79.3.2"}
    run("ip", "-n", ROUTER, "route", "replace", CHANGED, "via", ways["b"])
    time.sleep(0.5)
    datagrams = Datagrams(folder, peer("a"), [peer("b"), peer("c")], ["10.85.0.1"], DATAGRAMS_PER_SECOND)
    time.sleep(0.3)
    changed = []
    for number in range(CHANGES):
        old, new = ("b", "c") if number % 2 == 0 else ("c", "b")
        asked_ns = time.monotonic_ns()
        run("ip", "-n", ROUTER, "route", "replace", CHANGED, "via", ways[new])
        changed.append((asked_ns, time.monotonic_ns(), old))
        time.sleep(CHANGE_EVERY_S)
    time.sleep(CHANGE_EVERY_S)
    flows, _ = datagrams.end()
    sent_ns = {name: datagrams.sent_times(peer(name)) for name in ways}
    # Until the next change is asked for: from then on the old way is the new one.
    ends = [asked for asked, _, _ in changed[1:]] + [time.monotonic_ns()]
    late = []
    for (_, at, old), end in zip(changed, ends):
        stale = [sent for sent in sent_ns[old] if at < sent < end]
        late.append(max(((sent - at) / 1e6 for sent in stale), default=0.0))
    return late, flows[0].lost
