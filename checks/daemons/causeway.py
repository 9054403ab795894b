"""The router under test: the kernel alone, or `causeway up` beside it."""
import pathlib
import re
import socket

from network import COMMAND_LIMIT_S, CheckError, PREFIX, Process, ROUTER, run, wait_until

START_LIMIT_S = 60
# How the packets are forwarded, by name: the options of `up`, or None for the kernel alone.
MODES = {
    "kernel": None,
    "up": [],
    "up --driver": ["--driver"],
    "up --attach xdp": ["--attach", "xdp"],
    "up --attach xdp --driver": ["--attach", "xdp", "--driver"],
}
# Those in which Causeway forwards between virtual interfaces.
FORWARDING = [name for name in MODES if "xdp" in name]


def read(binary, path, handler, *arguments, fail=True):
    return run(binary, "read", "--socket", path, handler, *arguments, fail=fail).strip()


class Control:
    """A connection to the control socket, for many questions: a command for each would take longer than the answer."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(COMMAND_LIMIT_S)
        self.socket.connect(str(path))
        self.file = self.socket.makefile("rwb")
        self.file.readline()

    def read(self, handler, *arguments):
        self.file.write(" ".join(("READ", handler, *arguments)).encode() + b"\n")
        self.file.flush()
        said = self.file.readline().decode()
        if not said.startswith("200"):
            raise CheckError(f"the router says of {handler}: {said.strip()}")
        length = int(self.file.readline().split()[1])
        return self.file.read(length).decode()

    def close(self):
        self.file.close()
        self.socket.close()


class Router:
    """`causeway up` in the router's namespace; of the kernel alone there is nothing to be started."""

    def __init__(self, binary, folder, mode, ports, processors=None, namespace=ROUTER):
        self.binary, self.mode = binary, mode
        self.socket = pathlib.Path(folder) / "router.sock"
        self.process = None
        if MODES[mode] is None:
            return
        log = pathlib.Path(folder) / "router.log"
        log.unlink(missing_ok=True)
        words = [binary, "up", *ports, *MODES[mode], "--name", PREFIX, "--socket", self.socket]
        if processors is not None:
            words += ["--processors", str(processors)]
        self.process = Process(namespace, words, log)
        wait_until(f"`causeway {mode}`", self.answers, START_LIMIT_S)

    def answers(self):
        if not self.process.alive():
            raise CheckError(f"`causeway {self.mode}` ended: {self.process.said().strip()}")
        return bool(read(self.binary, self.socket, "version", fail=False))

    def read(self, handler, *arguments):
        return read(self.binary, self.socket, handler, *arguments)

    def forwarded(self):
        """Packets that Causeway itself has sent, by its ToDevices, in the graph or in the driver."""
        if self.process is None:
            return 0
        count = 0
        for line in self.read("counters").splitlines():
            _, element, name, value = line.split("\t")
            if name == "count" and re.fullmatch(r"out\d+", element):
                count += int(value)
        return count

    def differences(self):
        """Packets about which the self-check of the driver and the kernel were of two minds."""
        if self.mode not in FORWARDING or "--driver" not in self.mode:
            return 0
        return int(self.read("forward.differences"))

    def end(self):
        if self.process is None:
            return
        status = self.process.end()
        if status:
            raise CheckError(f"`causeway {self.mode}` ended with status {status}: {self.process.said().strip()}")

    def warnings(self):
        """Lines of its log that say that something is not as it should be."""
        lines = self.process.said().splitlines() if self.process else []
        return [line for line in lines if "warning" in line or "[panic]" in line or "[self-check]" in line]


def refused_ports(binary, namespace, ports, options):
    """Why `up` does not take these ports, or nothing."""
    done = run("sh", "-c", f"{binary} up {' '.join(ports)} {' '.join(options)} --dry-run 2>&1; echo status=$?",
               namespace=namespace)
    text, _, status = done.rpartition("status=")
    return "" if status.strip() == "0" else text.strip().splitlines()[-1].partition("causeway: ")[2]
