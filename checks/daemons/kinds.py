"""Kinds of interfaces that a router may have: each is made with a host behind it, and removed again.

The host is a namespace of its own, and has the addresses 10.80.N.2 and fd80:N::2; the router's are 10.80.N.1 and fd80:N::1.
"""
import sys
import pathlib

from network import PREFIX, Process, make_namespace, run, wait_until

CABLE = [sys.executable, "-IS", str(pathlib.Path(__file__).with_name("cable.py"))]


class Kind:
    """A veth, with the offloads that it is made with, like a container's. At XDP it would lose them, so it is not named there."""

    # Whether `up` is told of it where it is to forward, whether it has Ethernet headers, whether the host has GRO.
    named, ethernet, has_gro = False, True, True

    def __init__(self, router, number):
        self.router, self.number = router, number
        self.port, self.host, self.end = f"port{number}", f"{PREFIX}-h{number}", "net0"

    def address(self, version, last=2):
        return f"10.80.{self.number}.{last}" if version == 4 else f"fd80:{self.number}::{last}"

    def make(self, folder):
        del folder
        make_namespace(self.host, False)
        self.link(self.port, self.end)
        self.configure()

    def link(self, port, end):
        run("ip", "link", "add", end, "netns", self.host, "type", "veth", "peer", "name", port, "netns", self.router)
        for namespace, name in ((self.host, end), (self.router, port)):
            run("ip", "-n", namespace, "link", "set", name, "up")

    def configure(self):
        """Addresses, and the host's way to all others."""
        for namespace, interface, last in ((self.host, self.end, 2), (self.router, self.port, 1)):
            run("ip", "-n", namespace, "link", "set", interface, "up")
            run("ip", "-n", namespace, "addr", "add", f"{self.address(4, last)}/24", "dev", interface)
            run("ip", "-n", namespace, "addr", "add", f"{self.address(6, last)}/64", "dev", interface, "nodad")
        run("ip", "-n", self.host, "route", "add", "default", "via", self.address(4, 1))
        run("ip", "-n", self.host, "-6", "route", "add", "default", "via", self.address(6, 1))

    def gro(self, state):
        """Whether the host's end takes redirected frames: a veth does so while it has GRO."""
        if self.has_gro:
            run("ethtool", "-K", self.end, "gro", state, namespace=self.host)

    def remove(self):
        run("ip", "netns", "del", self.host, fail=False)
        for name in (self.port, f"{self.port}-under"):
            # The end of a veth goes with the other, a while after its namespace.
            run("ip", "-n", self.router, "link", "del", name, fail=False)
        wait_until("the interfaces to go", lambda: self.port not in run("ip", "-n", self.router, "link"), 20)


class Card(Kind):
    """A veth as a wire between cards: packets are whole, and the router's end is attached at XDP."""

    named = True

    def make(self, folder):
        super().make(folder)
        run("ethtool", "-K", self.end, "tx", "off", "tso", "off", "gso", "off", namespace=self.host)
        run("ethtool", "-K", self.port, "gro", "on", namespace=self.router)


class VethAtXdp(Kind):
    """A veth with its offloads, attached at XDP all the same: partial checksums come there."""

    named = True


class Macvlan(Kind):
    """A macvlan in mode bridge above a veth."""

    named = True

    def link(self, port, end):
        super().link(f"{port}-under", end)
        run("ip", "-n", self.router, "link", "add", port, "link", f"{port}-under", "type", "macvlan", "mode", "bridge")


class Bridge(Kind):
    """A bridge with a veth."""

    named = True

    def link(self, port, end):
        super().link(f"{port}-under", end)
        run("ip", "-n", self.router, "link", "add", port, "type", "bridge")
        run("ip", "-n", self.router, "link", "set", f"{port}-under", "master", port)


class Vxlan(Kind):
    """A vxlan over a veth."""

    named, has_gro = True, False

    def link(self, port, end):
        super().link(f"{port}-under", "under0")
        ends = ((self.router, port, f"{port}-under", 1, 2), (self.host, end, "under0", 2, 1))
        for namespace, name, under, own, other in ends:
            run("ip", "-n", namespace, "addr", "add", f"10.90.{self.number}.{own}/24", "dev", under)
            run("ip", "-n", namespace, "link", "add", name, "type", "vxlan", "id", self.number, "dstport", 4789,
                "dev", under, "local", f"10.90.{self.number}.{own}", "remote", f"10.90.{self.number}.{other}")


class Tun(Kind):
    """A TUN, whose other end is a TUN of the host: packets without Ethernet headers. A program carries them across."""

    mode, named, ethernet, has_gro = "tun", True, False, False
    cable = None

    def make(self, folder):
        make_namespace(self.host, False)
        log = pathlib.Path(folder) / f"cable{self.number}.log"
        log.unlink(missing_ok=True)
        words = [*CABLE, self.mode, f"/run/netns/{self.router}", self.port, f"/run/netns/{self.host}", self.end]
        self.cable = Process(self.host, words, log)
        wait_until(f"{self.mode}: {self.cable.said()}", lambda: "ready" in self.cable.said(), 20)
        self.configure()

    def remove(self):
        if self.cable:
            self.cable.end()
        super().remove()


class Tap(Tun):
    """A TAP, as a virtual machine has it, with a program that carries frames to a TAP of the host."""

    mode, ethernet = "tap", True


KINDS = {"card": Card, "veth": Kind, "veth at XDP": VethAtXdp, "TAP": Tap, "TUN": Tun, "macvlan": Macvlan,
         "bridge": Bridge, "vxlan": Vxlan}


def absent(namespace, names):
    """Those of the kinds that the kernel does not know."""
    missing = []
    for name in names:
        done = run("sh", "-c", f"ip link add probe0 type {name} 2>&1; true", namespace=namespace)
        if "Unknown device type" in done or "not supported" in done:
            missing.append(name)
        run("ip", "-n", namespace, "link", "del", "probe0", fail=False)
    return missing
