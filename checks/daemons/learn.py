"""OSPF and BGP of both versions of IP, with BFD: routes are learnt, and packets follow them."""
import time

from causeway import FORWARDING, MODES, Router
from network import PEERS, peer
from routing import DAEMONS, leave, start_neighbours, wait_for_routes
from traffic import Datagrams

SECONDS, PER_SECOND = 2, 250
PORTS = [f"to-{name}" for name in PEERS]
# Learnt by OSPF and by BGP, of a neighbour alone.
ADDRESSES = ["10.81.{n}.1", "10.82.{n}.1", "fd81:{n}::1", "fd82:{n}::1"]


def check(settings, folder):
    """A row for each daemon and mode."""
    for kind in settings.daemons:
        daemon = DAEMONS[kind].router(folder / kind)
        neighbours = start_neighbours(folder)
        try:
            learnt_s = wait_for_routes(daemon, neighbours)
            print(f"  {daemon.name}: all sessions up and routes learnt after {learnt_s:.1f} s")
            for mode in MODES:
                yield crossing(settings, folder, daemon, mode) | {"learnt_s": learnt_s}
        finally:
            leave(daemon)
            for neighbour in neighbours.values():
                neighbour.end()


def crossing(settings, folder, daemon, mode):
    """Datagrams from a to b and from b to a, and by whom they were forwarded."""
    router = Router(settings.binary, folder, mode, PORTS)
    try:
        flows, strange, forwarded = [], 0, 0
        for source, destination in (("a", "b"), ("b", "a")):
            before = router.forwarded()
            addresses = [address.format(n=PEERS[destination]) for address in ADDRESSES]
            datagrams = Datagrams(folder, peer(source), [peer(destination)], addresses, PER_SECOND)
            time.sleep(SECONDS)
            these, odd = datagrams.end()
            flows, strange = flows + these, strange + odd
            forwarded += router.forwarded() - before
        row = {
            "daemon": daemon.name, "mode": mode, "sent": sum(flow.sent for flow in flows),
            "lost": sum(flow.lost for flow in flows), "forwarded": forwarded,
            "strange": strange + sum(flow.twice + flow.unasked for flow in flows),
            "differences": router.differences(),
        }
    finally:
        router.end()
    row["ok"] = not (row["lost"] or row["strange"] or row["differences"])
    # Nearly all: an answer of the kernel's own, or a neighbour that is asked for, is its business.
    wanted = row["sent"] * 0.95 if mode in FORWARDING else 0
    if row["forwarded"] < wanted:
        row["ok"] = False
    print(f"    {mode:26} {row['sent']} sent, {row['lost']} lost, {row['forwarded']} forwarded by Causeway")
    return row
