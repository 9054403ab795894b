"""The routing daemons, as Debian has them: FRR or BIRD in the router, BIRD in its neighbours.

The router's configurations are those of conf/beside-frr and conf/beside-bird. Nothing is changed in them but where BIRD
writes its log.
"""
import json
import os
import pathlib
import pwd
import re
import shlex
import signal
import time

from network import CheckError, PEERS, Process, ROUTER, peer, run, wait_until

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
FRR_PROGRAMS = pathlib.Path("/usr/lib/frr")
# Sessions begin within seconds; a restart of BIRD waits for a neighbour up to half a minute.
SESSIONS_LIMIT_S = 60
# A daemon that has begun again first takes the kernel's routes for its own, or away, and then learns them anew.
KEPT_S = 8
# Prefixes that the router must have in the end, and by which neighbour.
LEARNT = {f"{net}": via for n, via in ((1, "to-a"), (2, "to-b"), (3, "to-c"))
          for net in (f"10.81.{n}.0/24", f"10.82.{n}.0/24", f"fd81:{n}::/64", f"fd82:{n}::/64")}
SHARED = ["10.83.0.0/24", "10.84.0.0/24", "fd83::/64", "fd84::/64"]


class Bird:
    """BIRD in a namespace."""

    name = "BIRD"

    def __init__(self, folder, namespace, text):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.namespace, self.socket, self.processes = namespace, self.folder / "bird.ctl", []
        (self.folder / "bird.conf").write_text(text)
        self.start()

    @classmethod
    def router(cls, folder):
        text = (ROOT / "conf/beside-bird/bird.conf").read_text()
        return cls(folder, ROUTER, text.replace("log syslog all;", f'log "{folder}/bird.log" all;'))

    @classmethod
    def neighbour(cls, folder, name, table=""):
        text = (HERE / "peer.conf").read_text()
        if name == "a":
            text = "".join(line for line in text.splitlines(True) if not line.endswith("# shared\n"))
        folder = pathlib.Path(folder)
        numbers = {"N": PEERS[name], "PREPEND": "true" if name == "c" else "false",
                   "METRIC": 200 if name == "c" else 20, "TABLE": table, "LOG": folder / "bird.log"}
        for key, value in numbers.items():
            text = text.replace(f"@{key}@", str(value))
        return cls(folder, peer(name), text)

    def start(self, recover=False):
        words = ["bird", "-f", "-c", self.folder / "bird.conf", "-s", self.socket] + (["-R"] if recover else [])
        self.socket.unlink(missing_ok=True)
        self.processes = [Process(self.namespace, words, self.folder / "bird.out")]
        wait_until("BIRD", self.answers, 60)

    def answers(self):
        if not self.processes[0].alive():
            raise CheckError("BIRD ended: " + self.processes[0].said())
        return self.socket.exists() and "up and running" in self.ask("show", "status", fail=False)

    def ask(self, *words, fail=True):
        return run("birdc", "-s", str(self.socket), *words, fail=fail)

    def sessions_down(self):
        """Protocols and BFD sessions that are not up."""
        down = []
        for line in self.ask("show", "protocols").splitlines():
            match = re.match(r"(\S+)\s+(OSPF|BGP)\s+\S+\s+(.*)", line)
            if match and not re.search(r"Running|Established", match[3]):
                down.append(match[1])
        found = re.findall(r"^(\S+)\s+\S+\s+(Up|Down|Init)\b", self.ask("show", "bfd", "sessions"), re.M)
        return down + [f"BFD {address}" for address, state in found if state != "Up"]

    def bfd_losses(self):
        """How often a BFD session was lost."""
        log = self.folder / "bird.log"
        text = log.read_text(errors="replace") if log.exists() else ""
        return len(re.findall(r"changed state from Up to (?:Down|AdminDown|Init)", text))

    def restart(self, gracefully):
        """Ends it in an orderly way and starts it again."""
        if gracefully:
            self.ask("graceful", "restart", fail=False)
            self.processes[0].process.wait(20)
        else:
            self.ask("down", fail=False)
            self.processes[0].process.wait(20)
        self.start(recover=gracefully)

    def kill(self):
        """kill -9; it is started again as its unit would, which knows nothing of what happened."""
        for process in self.processes:
            process.end(signal.SIGKILL)
        self.start()

    def end(self):
        for process in self.processes:
            process.end()

    def resident_mb(self):
        return sum(process.resident_mb() for process in self.processes)


class Frr:
    """FRR in the router: zebra and those of conf/beside-frr/daemons, and vtysh, which tells them all."""

    name = "FRR"

    def __init__(self, folder):
        self.folder, self.namespace, self.processes = pathlib.Path(folder), ROUTER, []
        self.folder.mkdir(parents=True, exist_ok=True)
        owner = pwd.getpwnam("frr")
        # Its daemons are not root when they make their sockets, and must get there.
        os.chmod(self.folder.parent, 0o755)
        os.chown(self.folder, owner.pw_uid, owner.pw_gid)
        self.options = self.daemons()
        self.start()

    @classmethod
    def router(cls, folder):
        return cls(folder)

    @staticmethod
    def daemons():
        """The daemons and their options, zebra first, whose clients the others are."""
        text = (ROOT / "conf/beside-frr/daemons").read_text()
        chosen = ["zebra", "staticd"] + re.findall(r"^(\w+d)=yes", text, re.M)
        options = dict(re.findall(r'^(\w+)_options="(.*)"', text, re.M))
        return {name: shlex.split(options.get(name, "")) for name in chosen}

    def start(self, recover=False):
        del recover
        nothing = self.folder / "nothing.conf"
        nothing.write_text("")
        self.processes = []
        for name, options in self.options.items():
            vty = self.folder / f"{name}.vty"
            vty.unlink(missing_ok=True)
            words = [FRR_PROGRAMS / name, *options, "--log", "stdout", "-f", nothing, "--vty_socket", self.folder,
                     "-z", self.folder / "zserv.api", "-i", self.folder / f"{name}.pid"]
            if name == "bfdd":
                words += ["--bfdctl", self.folder / "bfdd.sock"]
            process = Process(ROUTER, words, self.folder / f"{name}.log")
            self.processes.append(process)
            wait_until(f"{name}: {process.said()[-300:]}", vty.exists, 20)
        self.tell("-f", str(ROOT / "conf/beside-frr/frr.conf"))

    def tell(self, *words, fail=True):
        said = run("vtysh", "--vty_socket", str(self.folder), *words, fail=fail, limit_s=120)
        if fail and re.search(r"^%", said, re.M):
            raise CheckError("vtysh: " + said.strip())
        return said

    def ask(self, command, fail=True):
        return self.tell("-c", command, fail=fail)

    def shown(self, command):
        text = self.ask(command, fail=False)
        try:
            return json.loads(text)
        except json.JSONDecodeError:
            return {}

    def sessions_down(self):
        down = []
        for family in ("ipv4Unicast", "ipv6Unicast"):
            peers = self.shown("show bgp summary json").get(family, {}).get("peers", {})
            states = [(address, peer.get("state")) for address, peer in peers.items()]
            down += [f"BGP {address}" for address, state in states if state != "Established"]
            down += ["BGP"] if len(states) < len(PEERS) else []
        full = self.ask("show ip ospf neighbor", fail=False).count("Full/")
        full6 = self.ask("show ipv6 ospf6 neighbor", fail=False).count("Full/")
        down += ["OSPF"] * (2 * len(PEERS) - full - full6)
        for session in self.shown("show bfd peers json") or ():
            if session.get("status") != "up":
                down.append(f"BFD {session.get('peer')}")
        return down

    def bfd_losses(self):
        return sum(int(session.get("session-down", 0)) for session in self.shown("show bfd peers counters json") or ())

    def restart(self, gracefully):
        if gracefully:
            self.ask("graceful-restart prepare ip ospf", fail=False)
            self.ask("graceful-restart prepare ipv6 ospf", fail=False)
        self.end()
        self.start()

    def kill(self):
        for process in self.processes:
            process.process.send_signal(signal.SIGKILL)
        for process in self.processes:
            process.process.wait()
        self.start()

    def end(self):
        # In the order in which its own script does: clients first.
        for process in reversed(self.processes):
            process.end()

    def resident_mb(self):
        return sum(process.resident_mb() for process in self.processes)


DAEMONS = {"frr": Frr, "bird": Bird}


def leave(daemon):
    """Ends the router's daemon, and removes the routes that it leaves in the kernel for the one after it."""
    daemon.end()
    for protocol in ("bird", "bgp", "ospf", "zebra"):
        for family in ("-4", "-6"):
            run("ip", "-n", ROUTER, family, "route", "flush", "proto", protocol, fail=False)
    run("ip", "-n", ROUTER, "nexthop", "flush", fail=False)


def start_neighbours(folder, names=tuple(PEERS)):
    return {name: Bird.neighbour(pathlib.Path(folder) / f"peer-{name}", name) for name in names}


def route_of(prefix):
    """The interface by which the router's kernel forwards to a prefix, or nothing."""
    family = "-6" if ":" in prefix else "-4"
    match = re.search(r"dev (\S+)", run("ip", "-n", ROUTER, family, "route", "show", "exact", prefix))
    return match[1] if match else None


def missing_routes():
    """Prefixes that the router does not have by the neighbour that it should have them from."""
    there = {}
    for family in ("-4", "-6"):
        shown = run("ip", "-n", ROUTER, "-d", family, "route", "show")
        # Of a group of next hops, and of routes through an object, the interface is on the line or on the next.
        for match in re.finditer(r"^(?:unicast )?(\S+)(.*(?:\n\s+.*)*)", shown, re.M):
            there.setdefault(match[1], set()).update(re.findall(r"dev (\S+)", match[2]))
    wanted = {**LEARNT, **dict.fromkeys(SHARED, "to-b")}
    return [f"{prefix} by {via}" for prefix, via in wanted.items() if via not in there.get(prefix, ())]


def settled():
    """Waits until the kernel has all routes and keeps them."""
    since = time.monotonic()
    while time.monotonic() - since < KEPT_S:
        time.sleep(0.25)
        if missing_routes():
            since = wait_until("routes", lambda: not missing_routes(), SESSIONS_LIMIT_S) and time.monotonic()


def wait_for_routes(daemon, neighbours):
    """Seconds until all sessions are up and all routes in the kernel."""
    began = time.monotonic()
    everyone = [daemon, *neighbours.values()]
    try:
        wait_until("routes", lambda: not missing_routes(), SESSIONS_LIMIT_S)
        took = time.monotonic() - began
        wait_until("sessions", lambda: not any(one.sessions_down() for one in everyone), SESSIONS_LIMIT_S)
    except CheckError as error:
        down = [f"{one.namespace}: {', '.join(one.sessions_down())}" for one in everyone if one.sessions_down()]
        raise CheckError(f"{daemon.name}: {error}; missing: {missing_routes()}; down: {down}") from error
    return took
