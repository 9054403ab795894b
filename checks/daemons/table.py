"""A full table through BGP: time, memory, changes a second, and how soon a change is in force."""
import pathlib
import re
import threading
import time

from causeway import Control, Router
from network import CheckError, ROUTER, peer, run, wait_until
from routing import Bird, DAEMONS, SESSIONS_LIMIT_S, leave, missing_routes
from traffic import Datagrams

PORTS = ["to-a", "to-b", "to-c"]
MODES = ["kernel", "up --attach xdp", "up --attach xdp --driver"]
# The whole of a table must be there, and gone, within this.
TABLE_LIMIT_S = 300
# Of the prefixes, spread over all, those that are looked up in Causeway's table to see whether it is there.
SAMPLES = 200
# Prefixes whose ways change one after the other while datagrams go there.
CHANGED = "10.85.0.0/24"
CHANGES = 20
DATAGRAMS_PER_SECOND = 1000
FIRST_OCTET = 16


def prefixes(count):
    """Distinct networks of 24 bits, in 16.0.0.0 and after it, in a generated order that is always the same."""
    # 4 million networks of 24 bits; an odd step visits all before one comes twice.
    space, step = 1 << 22, 2_654_435_769
    for number in range(count):
        network = (number * step) % space
        yield f"{FIRST_OCTET + (network >> 16)}.{network >> 8 & 255}.{network & 255}.0"


def check(settings, folder):
    if settings.routes > 1 << 22:
        raise CheckError("there are no more than 4194304 prefixes to be made")
    names = list(prefixes(settings.routes))
    routes = folder / "table.conf"
    routes.write_text("".join(f"route {name}/24 blackhole;\n" for name in names))
    table = f'protocol static table4 {{\n    disabled;\n    ipv4;\ninclude "{routes}";\n}}'
    for kind in settings.daemons:
        for mode in MODES:
            yield through_bgp(settings, folder, kind, mode, table, names)
    for mode in MODES:
        yield in_force(settings, folder, mode, names)


def kernel_routes():
    """IPv4 prefixes in the kernel's main table, which it counts itself: a million lines take a second to be written."""
    text = run("cat", "/proc/net/fib_triestat", namespace=ROUTER)
    return int(re.search(r"^Main:.*?Prefixes:\s+(\d+)", text, re.M | re.S)[1])


def kernel_memory_mb():
    """What the kernel's own structures take, of the whole machine."""
    text = pathlib.Path("/proc/meminfo").read_text()
    return sum(int(re.search(rf"^{key}:\s+(\d+)", text, re.M)[1]) for key in ("Slab", "VmallocUsed", "Percpu")) / 1024


def through_bgp(settings, folder, kind, mode, table, names):
    """A neighbour announces all of it, and withdraws it."""
    memory = kernel_memory_mb()
    daemon = DAEMONS[kind].router(folder / kind)
    neighbour = Bird.neighbour(folder / "injector", "a", table)
    router = None
    try:
        router = Router(settings.binary, folder, mode, PORTS)
        own = router.process.resident_mb() if router.process else 0
        wait_until("routes of a", lambda: not any(line.endswith("to-a") for line in missing_routes()), SESSIONS_LIMIT_S)
        none = kernel_routes()
        began = time.monotonic()
        neighbour.ask("enable", "table4")
        kernel_s, table_s = until(router, names, began, lambda: kernel_routes() - none >= len(names), True)
        row = {
            "what": "announced", "daemon": daemon.name, "mode": mode, "routes": len(names), "kernel_s": round(kernel_s, 1),
            "table_s": table_s and round(table_s, 1), "daemon_mb": round(daemon.resident_mb()),
            "router_mb": round(router.process.resident_mb()) if router.process else 0, "router_before_mb": round(own),
            "kernel_mb": round(kernel_memory_mb() - memory),
        }
        began = time.monotonic()
        neighbour.ask("disable", "table4")
        kernel_s, table_s = until(router, names, began, lambda: kernel_routes() - none <= 0, False)
        row |= {"gone_kernel_s": round(kernel_s, 1), "gone_table_s": table_s and round(table_s, 1),
                "differences": router.differences(), "warnings": router.warnings()}
    finally:
        if router:
            router.end()
        leave(daemon)
        neighbour.end()
    row["ok"] = not row["differences"] and (mode == "kernel" or table_s is not None)
    print(f"    {daemon.name:5}{mode:26} {len(names)} routes: in the kernel after {row['kernel_s']} s, in the table "
          f"{row['table_s']} s; gone {row['gone_kernel_s']}, {row['gone_table_s']} s; daemon {row['daemon_mb']} MB, "
          f"router {row['router_mb']} MB, kernel {row['kernel_mb']} MB", flush=True)
    return row


def until(router, names, began, kernel_done, there):
    """When the kernel had, or had no more, all prefixes, and when Causeway's table followed, in seconds."""
    wait_until("the kernel's table", kernel_done, TABLE_LIMIT_S)
    kernel_s = time.monotonic() - began
    if router.process is None:
        return kernel_s, None
    left = names[:: max(1, len(names) // SAMPLES)] + names[-1:]
    control = Control(router.socket)
    while left:
        found = control.read("forward.lookup", left[-1][:-1] + "1")
        if (found != "none") == there:
            left.pop()
        elif time.monotonic() - began > TABLE_LIMIT_S:
            raise CheckError(f"after {TABLE_LIMIT_S} s Causeway says of {left[-1]}: {found}")
        else:
            time.sleep(0.01)
    control.close()
    return kernel_s, time.monotonic() - began


def in_force(settings, folder, mode, names):
    """How long datagrams still go the old way after a route has changed, at rest and in a storm of changes."""
    for name in ("b", "c"):
        run("ip", "-n", peer(name), "addr", "add", "10.85.0.1/32", "dev", "lo", fail=False)
    router = Router(settings.binary, folder, mode, PORTS)
    row = {"what": "in force", "mode": mode, "routes": len(names)}
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
    # The aims of the page are times; what is asserted is ten times those.
    row["ok"] = max(row["rest_ms"]) < 500 and max(row["storm_ms"]) < 10_000
    rest, storm = (f"{median(row[what]):.1f} ms (worst {max(row[what]):.1f})" for what in ("rest_ms", "storm_ms"))
    print(f"    {mode:26} in force after {rest}; in a storm of {row['changes_per_second']} changes a second {storm}", flush=True)
    return row


def changes(folder):
    """For each change of the way from b to c or back: milliseconds from when the kernel had it until the last datagram
    was sent that went the old way. And how many datagrams were lost."""
    ways = {"b": "10.79.2.2", "c": "10.79.3.2"}
    run("ip", "-n", ROUTER, "route", "replace", CHANGED, "via", ways["b"])
    time.sleep(0.5)
    datagrams = Datagrams(folder, peer("a"), [peer("b"), peer("c")], ["10.85.0.1"], DATAGRAMS_PER_SECOND)
    time.sleep(0.3)
    changed = []
    for number in range(CHANGES):
        old = "bc"[number % 2]
        new = "cb"[number % 2]
        run("ip", "-n", ROUTER, "route", "replace", CHANGED, "via", ways[new])
        changed.append((time.monotonic_ns(), old))
        time.sleep(0.2)
    time.sleep(0.5)
    flows, _ = datagrams.end()
    sent_ns = {name: datagrams.sent_times(peer(name)) for name in ways}
    ends = [at for at, _ in changed[1:]] + [time.monotonic_ns()]
    late = []
    for (at, old), end in zip(changed, ends):
        stale = [sent for sent in sent_ns[old] if at < sent < end]
        late.append(max(((sent - at) / 1e6 for sent in stale), default=0.0))
    return late, flows[0].lost


def median(values):
    values = sorted(values)
    return values[len(values) // 2]
