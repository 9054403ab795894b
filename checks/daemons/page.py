"""The page of results, from what the parts kept."""
import os
import pathlib
import re
import subprocess
from collections import defaultdict

import faults
from network import run
from table import median

COMMAND = "make daemons"


def machine(binary):
    """What was run where."""
    frr = subprocess.run(["/usr/lib/frr/zebra", "--version"], capture_output=True, text=True, check=False).stdout
    bird = subprocess.run(["bird", "--version"], capture_output=True, text=True, check=False).stderr
    model = re.search(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    return {
        "kernel": os.uname().release, "processors": os.cpu_count(), "model": model[1] if model else "unknown",
        "frr": frr.splitlines()[0].split()[-1] if frr else "none", "bird": bird.strip().split()[-1] if bird else "none",
        "causeway": run(binary, "--version").strip(),
    }


def page(results):
    about, parts = results["machine"], results["parts"]
    loads = ", ".join(f"{name} {ran['date']} UTC, load {ran['load']}{', quick' if ran['quick'] else ''}, {ran['took_s']} s"
                      for name, part in parts.items() for ran in part["runs"])
    text = [f"""# Beside FRR and BIRD

`{COMMAND}` makes these checks and writes this page. The machine: {about['processors']} processors ({about['model']}), kernel
{about['kernel']}. FRR {about['frr']} and BIRD {about['bird']} of Debian, unmodified, with the files of
[conf/beside-frr](../../conf/beside-frr) and [conf/beside-bird](../../conf/beside-bird); {about['causeway']}.
When each part began, and the load average of the machine then: {loads}. Where the load is not small the machine was busy with
other things, and times are worse than they are on a quiet one; the kernel alone was measured on the same machine, in turns.

In network namespaces, a router between three neighbours, which run BIRD. All links are veths; where Causeway is to forward,
it stands at XDP and the hosts send whole packets, as cards would.
"""]
    writers = {"learn": learnt, "table": full_table, "changes": in_force, "faults": failures, "overload": overloaded, "ports": matrix}
    for name, write in writers.items():
        if name in parts:
            text.append(write(parts[name]))
            if "error" in parts[name]:
                text.append(f"**Not all of it was done**: {parts[name]['error']}\n")
    return "\n".join(text)


def rows_of(header, rows):
    cells = ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    return "\n".join(["| " + " | ".join(header) + " |", "|" + " --- |" * len(header), *cells]) + "\n"


def verdict(row):
    return "well" if row["ok"] else "**not well**"


def learnt(part):
    rows = [(row["daemon"], row["mode"], f"{row['learnt_s']:.1f}", row["sent"], row["lost"], row["forwarded"], verdict(row))
            for row in part["rows"]]
    return f"""## OSPF, BGP and BFD, IPv4 and IPv6

Each neighbour announces a network by OSPF and one by BGP, of both versions of IP; BFD of three times 300 ms is with all of
them. Datagrams go from a to b and from b to a, to all networks. Without `--attach xdp` the program of `up` is at tcx on veths:
there it leaves all packets to the kernel, unless it has `--driver`.

{rows_of(["daemon", "forwarding", "routes learnt after, s", "sent", "lost", "forwarded by Causeway", ""], rows)}"""


def full_table(part):
    shown = [(row["daemon"], row["mode"], f"{row['routes']:,}".replace(",", " "), row["kernel_s"], row["table_s"] or "",
              row["gone_kernel_s"], row["gone_table_s"] or "", row["daemon_mb"], row["router_mb"] or "",
              row["router_before_mb"] or "", row["kernel_mb"], verdict(row)) for row in part["rows"]]
    return f"""## A full table

A neighbour announces generated networks of 24 bits by BGP, and withdraws them. Seconds from its first word until all are in the
kernel, and until Causeway forwards by all of them (200 are looked up, spread over the table); the same for the end. Memory in
MB: resident, of the daemon and of Causeway with the table, of Causeway before, and what the kernel's own structures grew by.

{rows_of(["daemon", "forwarding", "routes", "in the kernel, s", "in Causeway, s", "gone, kernel, s", "gone, Causeway, s", "daemon", "Causeway", "before", "kernel", ""], shown)}"""


def in_force(part):
    forced = [(row["mode"], row["changes_per_second"], f"{median(row['rest_ms']):.0f}", f"{max(row['rest_ms']):.0f}",
               f"{median(row['storm_ms']):.0f}", f"{max(row['storm_ms']):.0f}", row["rest_lost"], row["storm_lost"],
               row["behind_s"] if row["behind_s"] is not None else "", verdict(row)) for row in part["rows"]]
    return f"""## Changes in force

A route of which datagrams are on their way, one a millisecond, is changed eight times, every two seconds, to another next hop, at rest and while
`ip -batch` adds and removes all routes of the table. In force: from when the kernel has the change until the last datagram is
sent that goes the old way, in milliseconds. The aims are 50 ms at rest, 1 000 ms in a storm. The last column but one is how long after
the last change of the storm Causeway's table was level with the kernel's, in seconds.

{rows_of(["forwarding", "changes a second", "at rest, median", "worst", "in a storm, median", "worst", "lost at rest", "lost in the storm", "behind", ""], forced)}"""


def failures(part):
    groups = defaultdict(list)
    for row in part["rows"]:
        groups[row["daemon"], row["fault"], row["mode"]].append(row)
    shown = []
    for (daemon, fault, mode), rows in groups.items():
        cells = []
        for stream in range(len(faults.STREAMS)):
            gaps = [row["gap_ms"][stream] for row in rows]
            losses = [row["lost"][stream] for row in rows]
            cells.append(f"{median(losses)} / {median(gaps):.0f} ({max(gaps):.0f})")
        shown.append((daemon, fault, mode, len(rows), *cells, "well" if all(row["ok"] for row in rows) else "**not well**"))
    shown.sort(key=lambda row: row[:2])
    return f"""## Next hops and daemons that fail

Four streams of {faults.PER_SECOND} datagrams a second cross the router to addresses that two neighbours announce, while
{faults.LOAD_PER_SECOND} others a second keep it busy. Datagrams lost and the longest gap in ms, medians, and the worst gap in
brackets. A daemon is started again at once after it has ended. What BIRD and FRR do to the kernel's routes while they
restart is theirs, and the same with the kernel alone.

{rows_of(["daemon", "fault", "forwarding", "times", *faults.STREAMS, ""], shown)}"""


def overloaded(part):
    rows = [(row["daemon"], row["mode"], row["seconds"], row["sent_per_second"], row["arrived_per_second"],
             row["forwarded_per_second"], sum(row["bfd_lost"]), "; ".join(row["down"]) or "none", verdict(row))
            for row in part["rows"]]
    return f"""## Control traffic under overload

A neighbour sends datagrams of 60 octets as fast as it can (asked of it are 5 million a second) from the first processor. Of
Causeway the worker is pinned to the last; daemons are not pinned. Meanwhile all sessions are looked at every second, and BFD
counts those that it loses, on the router and on all neighbours.

{rows_of(["daemon", "forwarding", "seconds", "sent a second", "arrived", "forwarded by Causeway", "BFD sessions lost", "sessions seen down", ""], rows)}"""


def matrix(part):
    kinds = next((row for row in part["rows"] if row.get("what") == "kinds"), {"absent": []})
    groups = defaultdict(list)
    for row in part["rows"]:
        if "left" in row:
            groups[row["left"], row["right"]].append(row)
    shown = []
    for (left, right), rows in groups.items():
        bad = [f"{row['mode']}, GRO {row['gro']}: lost {row['lost']} (kernel {row['kernel_lost']}), wrong {row['strange']}, "
               f"TCP {'whole' if row['stream'] else 'not whole'}" for row in rows if not row["ok"]]
        shown.append((left, right, len(rows), sum(row["sent"] for row in rows), sum(row["lost"] for row in rows),
                      sum(row["kernel_lost"] for row in rows), sum(row["forwarded"] for row in rows),
                      "; ".join(bad) or "well"))
    return f"""## Ports of every kind

Datagrams and two megabytes of TCP each way between hosts behind ports of two kinds, IPv4 and IPv6; with the kernel alone, with
`up` of all ports that it takes, and the same at XDP, with and without `--driver`; peers with and without GRO where they have
it. A card is a veth whose host sends whole packets. A port that has no XDP, or no Ethernet header, is not named at XDP, and is
the kernel's. Nothing may be lost that the kernel alone forwards, nothing come twice or changed.

{rows_of(["one", "the other", "runs", "sent", "lost", "lost by the kernel alone", "forwarded by Causeway", ""], shown)}
Not in this kernel, and so untested: {', '.join(kinds['absent']) or 'nothing'}.
"""
