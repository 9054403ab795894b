"""Failures of next hops and of daemons under load, beside the kernel alone: what is lost, and for how long."""
import time

from causeway import FORWARDING, Router
from network import CheckError, PEERS, peer, run
from routing import DAEMONS, SHARED, leave, route_of, settled, start_neighbours, wait_for_routes
from traffic import Datagrams, Flood

# One stream each by a route of BGP and of OSPF, of IPv4 and of IPv6; b and c both have these addresses, b is preferred.
STREAMS = {"BGP, IPv4": "10.83.0.1", "OSPF, IPv4": "10.84.0.1", "BGP, IPv6": "fd83::1", "OSPF, IPv6": "fd84::1"}
PER_SECOND = 500
# Beside them, packets that nobody counts.
LOAD_PER_SECOND = 20_000
BEFORE_S, SILENT_S = 0.7, 3.0
PORTS = [f"to-{name}" for name in PEERS]


def cable(daemon):
    """The next hop's cable is pulled, at its end."""
    del daemon
    run("ip", "-n", peer("b"), "link", "set", "net0", "down")
    time.sleep(SILENT_S)


def cable_back(daemon):
    del daemon
    run("ip", "-n", peer("b"), "link", "set", "net0", "up")
    # Addresses of IPv6 and routes by the interface went with it.
    run("ip", "-n", peer("b"), "addr", "replace", "fd79:2::2/64", "dev", "net0", "nodad")
    run("ip", "-n", peer("b"), "route", "replace", "default", "via", "10.79.2.1", "metric", "9999")
    run("ip", "-n", peer("b"), "-6", "route", "replace", "default", "via", "fd79:2::1", "metric", "9999")


def silent(daemon):
    """The next hop falls silent with its cable in place: BFD notices after 900 ms."""
    del daemon
    rules = ("table netdev silent { chain in { type filter hook ingress device net0 priority 0; policy drop; }; }\n"
             "table inet silent { chain out { type filter hook output priority 0; policy drop; }; }")
    run("nft", "-f", "-", namespace=peer("b"), given=rules)
    time.sleep(SILENT_S)


def silent_back(daemon):
    del daemon
    run("nft", "flush", "ruleset", namespace=peer("b"))


def graceful(daemon):
    """A graceful restart of the router's daemon."""
    daemon.restart(gracefully=True)
    settled()


def restart(daemon):
    """An ordinary restart of the router's daemon."""
    daemon.restart(gracefully=False)
    settled()


def kill(daemon):
    """kill -9 of the router's daemon, all its processes, and a start."""
    daemon.kill()
    settled()


FAULTS = {
    "next hop, cable pulled": (cable, cable_back),
    "next hop, silent (BFD)": (silent, silent_back),
    "graceful restart": (graceful, None),
    "restart": (restart, None),
    "kill -9": (kill, None),
}


def check(settings, folder):
    """A row for each daemon, fault, mode and time."""
    for kind in settings.daemons:
        daemon = DAEMONS[kind].router(folder / kind)
        neighbours = start_neighbours(folder)
        try:
            wait_for_routes(daemon, neighbours)
            # The modes take turns, so that what else the machine does meets them all.
            for time_number in range(settings.times):
                for mode in ["kernel", *(FORWARDING[-1:] if settings.quick else FORWARDING)]:
                    for fault in (fault for fault in FAULTS if not (settings.quick and fault == "restart")):
                        yield once(settings, folder, daemon, neighbours, fault, mode) | {"time": time_number}
        finally:
            leave(daemon)
            for neighbour in neighbours.values():
                neighbour.end()


def once(settings, folder, daemon, neighbours, fault, mode):
    make, mend = FAULTS[fault]
    router = Router(settings.binary, folder, mode, PORTS)
    flood = Flood(settings.binary, folder, LOAD_PER_SECOND)
    try:
        ways = {prefix: route_of(prefix) for prefix in SHARED}
        if set(ways.values()) != {"to-b"}:
            raise CheckError(f"before '{fault}' the routes are not by b: {ways}")
        receivers = [peer("b"), peer("c")]
        datagrams = Datagrams(folder, peer("a"), receivers, list(STREAMS.values()), PER_SECOND)
        time.sleep(BEFORE_S)
        before, at_ns = router.forwarded(), time.monotonic_ns()
        make(daemon)
        flows, strange = datagrams.end()
        forwarded = router.forwarded() - before
    finally:
        flood.end()
        if mend:
            mend(daemon)
        router.end()
    wait_for_routes(daemon, neighbours)
    row = {
        "daemon": daemon.name, "fault": fault, "mode": mode, "sent": [flow.sent for flow in flows],
        "lost": [flow.lost for flow in flows], "gap_ms": [round(flow.gap_ms, 1) for flow in flows],
        "over_ms": [round((flow.last_lost_ns - at_ns) / 1e6, 1) if flow.last_lost_ns else 0 for flow in flows],
        "strange": strange + sum(flow.twice + flow.unasked for flow in flows), "forwarded": forwarded,
    }
    # Whether it is worse than the kernel alone is said by the page, of the medians; here, what may never be.
    row["ok"] = not row["strange"] and (mode == "kernel" or forwarded > 0)
    print(f"    {daemon.name:5}{fault:24}{mode:26} lost {row['lost']}, longest gap {row['gap_ms']} ms", flush=True)
    return row
