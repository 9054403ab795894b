"""Network namespaces, the links between them, and the processes that run there.

    cw-daemons-a ---- cw-daemons-r ---- cw-daemons-b
                           \\----------- cw-daemons-c

The router's ports are to-a, to-b and to-c, those of the others net0. All that is made carries the prefix, so that what a
run that was killed left behind is found by it.
"""
import os
import pathlib
import signal
import subprocess
import time

PREFIX = "cw-daemons"
ROUTER = PREFIX + "-r"
# The neighbours' numbers are those of their networks: 10.79.N.0/24 and fd79:N::/64.
PEERS = {"a": 1, "b": 2, "c": 3}
# For commands that answer at once on a machine that is not stuck.
COMMAND_LIMIT_S = 60


class CheckError(Exception):
    """What was tried cannot be done: the text says what and why."""


def peer(name):
    """The namespace of a neighbour."""
    return f"{PREFIX}-{name}"


def run(*words, namespace=None, fail=True, given=None, limit_s=COMMAND_LIMIT_S):
    """What a command writes to its output. With `fail`, its error is an error here."""
    if namespace:
        words = ("ip", "netns", "exec", namespace, *words)
    words = tuple(map(str, words))
    try:
        done = subprocess.run(words, input=given, capture_output=True, text=True, timeout=limit_s, check=False)
    except subprocess.TimeoutExpired as expired:
        raise CheckError(f"{' '.join(words)}: no answer in {limit_s} s") from expired
    if fail and done.returncode:
        raise CheckError(f"{' '.join(words)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def wait_until(what, condition, limit_s):
    """Seconds that went by until a condition held."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > limit_s:
            raise CheckError(f"waited {limit_s} s for {what}")
        time.sleep(0.05)
    return time.monotonic() - began


class Process:
    """A process in a namespace; its output is in a file. It dies with this one."""

    def __init__(self, namespace, words, log, processors=None):
        prefix = ["setpriv", "--pdeathsig", "KILL", "ip", "netns", "exec", namespace]
        if processors is not None:
            prefix += ["taskset", "-c", str(processors)]
        self.namespace, self.log = namespace, pathlib.Path(log)
        with open(log, "ab") as output:
            self.process = subprocess.Popen([*prefix, *map(str, words)], stdin=subprocess.DEVNULL, stdout=output,
                                            stderr=subprocess.STDOUT, start_new_session=True)
        self.pid = self.process.pid

    def alive(self):
        return self.process.poll() is None

    def end(self, number=signal.SIGTERM, limit_s=15):
        """Sends a signal and waits for the end; a process that does not end is killed."""
        if self.alive():
            self.process.send_signal(number)
        try:
            return self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    def said(self):
        return self.log.read_text(errors="replace")

    def resident_mb(self):
        """Resident memory in MB, as /proc/PID/status has it."""
        for line in pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
        return 0.0


def setting(namespace, path, value):
    """A setting below /proc/sys/net."""
    run("sh", "-c", f"echo {value} > /proc/sys/net/{path}", namespace=namespace)


def make_namespace(name, forward):
    run("ip", "netns", "add", name)
    run("ip", "-n", name, "link", "set", "lo", "up")
    for where in ("all", "default"):
        setting(name, f"ipv6/conf/{where}/accept_dad", 0)
        setting(name, f"ipv4/conf/{where}/rp_filter", 0)
        setting(name, f"ipv6/conf/{where}/forwarding", int(forward))
    setting(name, "ipv4/ip_forward", int(forward))


def like_cards(ends):
    """Makes veths behave as wires between cards: whole packets with checksums, and redirected frames are taken."""
    for namespace, interface, is_host in ends:
        words = ["gro", "on"] + (["tx", "off", "tso", "off", "gso", "off"] if is_host else [])
        run("ethtool", "-K", interface, *words, namespace=namespace)


def make_neighbours():
    """The router, its three neighbours and the links between them."""
    make_namespace(ROUTER, True)
    ends = []
    for name, number in PEERS.items():
        host, port = peer(name), f"to-{name}"
        make_namespace(host, False)
        run("ip", "link", "add", "net0", "netns", host, "type", "veth", "peer", "name", port, "netns", ROUTER)
        for namespace, interface, last in ((host, "net0", 2), (ROUTER, port, 1)):
            run("ip", "-n", namespace, "addr", "add", f"10.79.{number}.{last}/24", "dev", interface)
            run("ip", "-n", namespace, "addr", "add", f"fd79:{number}::{last}/64", "dev", interface, "nodad")
            run("ip", "-n", namespace, "link", "set", interface, "up")
            ends.append((namespace, interface, namespace == host))
        own = [f"10.81.{number}.1/32", f"10.82.{number}.1/32", f"fd81:{number}::1/128", f"fd82:{number}::1/128"]
        # What b has c has too, so that there is another way.
        shared = [] if name == "a" else ["10.83.0.1/32", "10.84.0.1/32", "fd83::1/128", "fd84::1/128"]
        for address in own + shared:
            run("ip", "-n", host, "addr", "add", address, "dev", "lo", *(["nodad"] if ":" in address else []))
        # Of last resort: whether packets get to the router must not hang on what its daemon tells while it restarts.
        run("ip", "-n", host, "route", "add", "default", "via", f"10.79.{number}.1", "metric", "9999")
        run("ip", "-n", host, "-6", "route", "add", "default", "via", f"fd79:{number}::1", "metric", "9999")
    like_cards(ends)


def mac(namespace, interface):
    return run("cat", f"/sys/class/net/{interface}/address", namespace=namespace).strip()


def received(namespace, interface):
    """Packets that an interface has received."""
    return int(run("cat", f"/sys/class/net/{interface}/statistics/rx_packets", namespace=namespace))


def remove_all():
    """Removes all namespaces of this check, here or of an earlier run, with what runs in them."""
    for name in os.listdir("/run/netns") if os.path.isdir("/run/netns") else []:
        if not name.startswith(PREFIX + "-"):
            continue
        for pid in run("ip", "netns", "pids", name, fail=False).split():
            try:
                os.kill(int(pid), signal.SIGKILL)
            except ProcessLookupError:
                pass
        run("ip", "netns", "del", name, fail=False)
    for folder in ("/run/causeway", "/run/causeway/up"):
        for file in pathlib.Path(folder).glob(PREFIX + "*"):
            file.unlink(missing_ok=True)
