"""Packets between ports of every kind that this kernel has: none lost that it alone forwards, none wrong."""
import pathlib
import subprocess
import sys
import time

import kinds
from causeway import MODES, Router, refused_ports
from network import CheckError, PREFIX, Process, make_namespace, run, wait_until
from traffic import Datagrams

NAMESPACE = f"{PREFIX}-p"
PER_SECOND, SECONDS = 400, 0.5
STREAM_BYTES, STREAM_LIMIT_S = 2_000_000, 60
STREAM = [sys.executable, "-IS", str(pathlib.Path(__file__).with_name("stream.py"))]
# Tried by `ip link add`; what this kernel has not cannot be tested.
PROBED = ("vlan", "bond", "wireguard", "ppp", "vrf", "ipip", "gre")


def check(settings, folder):
    """A row for each pair of kinds, mode and setting of GRO, and one that says what the kernel has not."""
    make_namespace(NAMESPACE, True)
    absent = kinds.absent(NAMESPACE, PROBED)
    yield {"what": "kinds", "absent": absent, "ok": True}
    print(f"    not in this kernel, and so untested: {', '.join(absent)}")
    # Packets go both ways in each.
    names = list(kinds.KINDS)
    pairs = [(left, right) for at, left in enumerate(names) for right in names[at:]]
    if settings.quick:
        pairs = [pair for pair in pairs if pair[0] == "card"]
    for left, right in pairs:
        sides = [kinds.KINDS[left](NAMESPACE, 1), kinds.KINDS[right](NAMESPACE, 2)]
        try:
            for side in sides:
                side.make(folder)
            yield from crossings(settings, folder, (left, right), sides)
        finally:
            for side in sides:
                side.remove()


def crossings(settings, folder, pair, sides):
    """The kernel alone, and then each mode that takes at least one of the two."""
    rows = []
    # Neighbours are known before: the first packet to one that is not may wait, and be the only one that is lost.
    for there, back in (sides, sides[::-1]):
        for version in (4, 6):
            run("ping", "-c", "1", "-W", "2", back.address(version), namespace=there.host, fail=False)
    for gro in ("on", "off"):
        if gro == "off" and (settings.quick or not all(side.has_gro for side in sides)):
            continue
        for side in sides:
            side.gro(gro)
        kernel = crossing(settings, folder, "kernel", [], sides)
        for mode, options in MODES.items():
            ports = [side.port for side in sides
                     if side.named and not refused_ports(settings.binary, NAMESPACE, [side.port], options or [])]
            if mode != "kernel" and "xdp" not in mode:
                ports = [side.port for side in sides if side.ethernet]
            if mode == "kernel" or not ports:
                continue
            seen = crossing(settings, folder, mode, ports, sides)
            row = {"left": pair[0], "right": pair[1], "gro": gro, "mode": mode, "ports": len(ports), **seen,
                   "kernel_lost": kernel["lost"]}
            row["ok"] = (seen["lost"] <= kernel["lost"] and not seen["strange"]
                         and seen["stream"] == kernel["stream"] and not seen["differences"])
            if not row["ok"]:
                print(f"    {pair[0]} -> {pair[1]}, GRO {gro}, {mode}: {seen}; the kernel alone: {kernel}", flush=True)
            rows.append(row)
    print(f"    {pair[0]} -> {pair[1]}: {sum(row['ok'] for row in rows)} of {len(rows)} well", flush=True)
    return rows


def crossing(settings, folder, mode, ports, sides):
    """Datagrams and a stream of TCP each way at once; what was lost, and who forwarded."""
    router = Router(settings.binary, folder, mode, ports, namespace=NAMESPACE)
    seen = {"sent": 0, "lost": 0, "strange": 0}
    ways = (sides, sides[::-1])
    try:
        running = []
        for there, back in ways:
            part = folder / there.host
            part.mkdir(exist_ok=True)
            running.append(Datagrams(part, there.host, [back.host], [back.address(4), back.address(6)], PER_SECOND))
        time.sleep(SECONDS)
        for datagrams in running:
            flows, strange = datagrams.end()
            seen["sent"] += sum(flow.sent for flow in flows)
            seen["lost"] += sum(flow.lost for flow in flows)
            seen["strange"] += strange + sum(flow.twice + flow.unasked for flow in flows)
        seen |= {"stream": streams(folder, ways), "forwarded": router.forwarded(), "differences": router.differences()}
    finally:
        router.end()
    return seen


def streams(folder, ways):
    """Whether streams of TCP of IPv4 and IPv6 arrived each way, whole and as they were sent."""
    takers, givers = [], []
    try:
        for there, back in ways:
            log = folder / there.host / "stream.log"
            log.unlink(missing_ok=True)
            takers.append(Process(back.host, [*STREAM, "take", STREAM_BYTES], log))
        for taker in takers:
            wait_until("a listener", lambda taker=taker: "listening" in taker.said(), 20)
        for there, back in ways:
            words = [*STREAM, "give", STREAM_BYTES, back.address(4), back.address(6)]
            givers.append(Process(there.host, words, folder / there.host / "giver.log"))
        return not any(process.process.wait(STREAM_LIMIT_S) for process in givers + takers)
    except (CheckError, subprocess.TimeoutExpired):
        return False
    finally:
        for process in takers + givers:
            process.end()
