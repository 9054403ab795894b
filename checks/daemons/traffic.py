"""Traffic through the router: numbered datagrams, of which each is accounted for, and floods."""
import pathlib
import sys
import time

from network import CheckError, Process, ROUTER, mac, peer, wait_until
import probe

PROBE = [sys.executable, "-IS", str(pathlib.Path(__file__).with_name("probe.py"))]
# Of a datagram on its way when the sender stops.
STRAGGLERS_S = 0.5


class Flow:
    """What became of one stream."""

    def __init__(self, sent, arrived):
        """`sent` is the time of each number, `arrived` a list of numbers in the order of their arrival."""
        there = set(arrived)
        numbers = sorted(sent)
        self.sent = len(numbers)
        self.lost = sum(number not in there for number in numbers)
        self.twice = len(arrived) - len(there)
        self.unasked = len(there - sent.keys())
        self.overtaken = sum(later < earlier for earlier, later in zip(arrived, arrived[1:]))
        self.gap_ms, self.last_lost_ns = longest_gap(numbers, sent, there)


def longest_gap(numbers, sent, there):
    """The longest run of datagrams that never came, in milliseconds, and when the last that was lost was sent.

    A run lasts from when the last before it was sent until the first after it was.
    """
    longest, before, lost, last_lost = 0, None, False, None
    for number in numbers:
        if number not in there:
            lost, last_lost = True, sent[number]
            continue
        if lost and before is not None:
            longest = max(longest, sent[number] - before)
        before, lost = sent[number], False
    if lost and before is not None:
        longest = max(longest, last_lost - before)
    return longest / 1e6, last_lost


def records(path):
    data = path.read_bytes()
    whole = len(data) - len(data) % probe.RECORD.size
    return probe.RECORD.iter_unpack(data[:whole])


class Datagrams:
    """Streams from one namespace to addresses that may be in several."""

    def __init__(self, folder, sender, receivers, addresses, per_second):
        self.folder, self.addresses = pathlib.Path(folder), addresses
        self.receivers = []
        for name in receivers:
            file = self.folder / f"received.{name}"
            file.unlink(missing_ok=True)
            log = self.folder / f"receiver.{name}.log"
            log.unlink(missing_ok=True)
            process = Process(name, [*PROBE, "receive", file], log)
            self.receivers.append((process, file))
        for process, _ in self.receivers:
            wait_until("a receiver of datagrams", lambda process=process: "listening" in process.said(), 20)
        self.file = self.folder / "sent"
        self.sender = Process(sender, [*PROBE, "send", self.file, per_second, *addresses], self.folder / "sender.log")

    def sent_times(self, receiver):
        """When those were sent that arrived in a namespace."""
        return [sent for process, file in self.receivers if process.namespace == receiver for _, _, sent, _ in records(file)]

    def end(self):
        """The streams as they were, in the order of the addresses, and how many datagrams came that nobody sent."""
        self.sender.end()
        time.sleep(STRAGGLERS_S)
        for process, _ in self.receivers:
            process.end()
        sent = [{} for _ in self.addresses]
        for stream, number, sent_ns, _ in records(self.file):
            sent[stream][number] = sent_ns
        arrived = [[] for _ in self.addresses]
        strange = 0
        for _, file in self.receivers:
            for stream, number, _, at_ns in records(file):
                if stream >= len(arrived):
                    strange += 1
                else:
                    arrived[stream].append((at_ns, number))
        flows = [Flow(times, [number for _, number in sorted(numbers)]) for times, numbers in zip(sent, arrived)]
        if not all(flow.sent for flow in flows):
            raise CheckError("the sender of datagrams sent none: " + self.sender.said())
        return flows, strange


class Flood:
    """Small datagrams from a neighbour to nobody behind another, as fast as `per_second`, from the first processor."""

    # Announced by b, and thrown away by it: no address of its own, and it does not forward.
    DESTINATION = "10.82.2.99"

    def __init__(self, binary, folder, per_second):
        socket = pathlib.Path(folder) / "flood.sock"
        graph = (f"FastUDPSource({per_second}, -1, 60, {mac(peer('a'), 'net0')}, 10.81.1.1, 5555, "
                 f"{mac(ROUTER, 'to-a')}, {self.DESTINATION}, 9) -> out :: ToDevice(net0, METHOD TRANSIT);")
        self.process = Process(peer("a"), [binary, "run", "--name", "cw-daemons-flood", "--socket", socket,
                                           "--processors", "0", "-e", graph], pathlib.Path(folder) / "flood.log")
        self.binary, self.socket = binary, socket
        wait_until("the generator", self.sent, 20)

    def sent(self):
        """Packets that left."""
        from causeway import read
        if not self.process.alive():
            raise CheckError("the generator ended: " + self.process.said())
        return int(read(self.binary, self.socket, "out.count", fail=False) or 0)

    def end(self):
        self.process.end()
