"""A full table through BGP: how soon it is there and gone, and what memory it takes."""
import pathlib
import re
import time

from causeway import Control, Router
from network import CheckError, ROUTER, run, wait_until
from routing import Bird, DAEMONS, SESSIONS_LIMIT_S, leave, missing_routes

PORTS = ["to-a", "to-b", "to-c"]
MODES = ["kernel", "up --attach xdp", "up --attach xdp --driver"]
# The whole of a table must be there, and gone, within this.
TABLE_LIMIT_S = 300
# Of the prefixes, spread over all, those that are looked up in Causeway's table to see whether it is there.
SAMPLES = 200
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
            "daemon": daemon.name, "mode": mode, "routes": len(names), "kernel_s": round(kernel_s, 1),
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


def median(values):
    values = sorted(values)
    return values[len(values) // 2]
