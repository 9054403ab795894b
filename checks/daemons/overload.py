"""Control traffic under overload: more packets than the data plane takes, and BFD, OSPF and BGP must not notice."""
import os
import time

from causeway import FORWARDING, Router
from network import PEERS, peer, received
from routing import DAEMONS, leave, start_neighbours, wait_for_routes
from traffic import Flood

PORTS = [f"to-{name}" for name in PEERS]
# More than either forwards, so that the generator is what sets the rate, or the rings overflow.
FLOOD_PER_SECOND = 5_000_000
LOOK_EVERY_S = 1


def check(settings, folder):
    """A row for each daemon and mode. The router's worker has the last processor, the generator the first."""
    for kind in settings.daemons:
        daemon = DAEMONS[kind].router(folder / kind)
        neighbours = start_neighbours(folder)
        try:
            for mode in ["kernel", *FORWARDING]:
                wait_for_routes(daemon, neighbours)
                yield flooded(settings, folder, daemon, neighbours, mode)
        finally:
            leave(daemon)
            for neighbour in neighbours.values():
                neighbour.end()


def flooded(settings, folder, daemon, neighbours, mode):
    router = Router(settings.binary, folder, mode, PORTS, processors=os.cpu_count() - 1)
    everyone = [daemon, *neighbours.values()]
    flood = None
    losses = [one.bfd_losses() for one in everyone]
    down = set()
    try:
        flood = Flood(settings.binary, folder, FLOOD_PER_SECOND)
        began, arrived, sent, forwarded = time.monotonic(), received(peer("b"), "net0"), flood.sent(), router.forwarded()
        while time.monotonic() - began < settings.seconds:
            time.sleep(LOOK_EVERY_S)
            for one in everyone:
                down.update(f"{one.namespace}: {what}" for what in one.sessions_down())
        took = time.monotonic() - began
        arrived, sent = received(peer("b"), "net0") - arrived, flood.sent() - sent
        forwarded = router.forwarded() - forwarded
        differences = router.differences()
    finally:
        if flood:
            flood.end()
        router.end()
    row = {
        "daemon": daemon.name, "mode": mode, "seconds": round(took), "sent_per_second": round(sent / took),
        "arrived_per_second": round(arrived / took), "forwarded_per_second": round(forwarded / took),
        "bfd_lost": [after.bfd_losses() - before for after, before in zip(everyone, losses)], "down": sorted(down),
        "differences": differences,
    }
    row["ok"] = not (any(row["bfd_lost"]) or row["down"] or row["differences"])
    print(f"    {daemon.name:5}{mode:26} {row['sent_per_second']} sent a second, {row['arrived_per_second']} arrived; "
          f"BFD sessions lost {sum(row['bfd_lost'])}; down {row['down']}", flush=True)
    return row
