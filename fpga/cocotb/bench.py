# SPDX-License-Identifier: MIT OR Apache-2.0
"""One card on AXI between independent models: cocotbext-eth's GMII, cocotbext-axi's master and slave. Host memory, the
driver, and a peer card that speaks the protocol of README.md are here, written from the documents alone."""

import re
from pathlib import Path

from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, Event, with_timeout
from cocotbext.axi import AddressSpace, AxiBus, AxiMaster, AxiSlave, Region
from cocotbext.eth import GmiiFrame, GmiiSink, GmiiSource

PACKAGE = (Path(__file__).resolve().parent.parent / "rtl" / "nic_pkg.sv").read_text()
REG = {name: int(value, 16) for name, value in re.findall(r"REG_(\w+) = 12'h([0-9a-f]+);", PACKAGE)}
EVENT = {name: int(value) for name, value in re.findall(r"EV_(\w+) = (\d+);", PACKAGE)}
BIT = {name: 1 << int(value) for name, value in re.findall(r"BIT_(\w+) = (\d+);", PACKAGE)}

OWN, PEER = 0, 1
MAC = {0: bytes.fromhex("020000000000"), 1: bytes.fromhex("020000000001")}
NEXT_HOP = bytes.fromhex("020000000201")
PEER_BAR = 0x8001_0000
MEMORY_BYTES = 0x20_0000
DESCRIPTORS, BUFFERS, SENT, DONE = 0x0000, 0x08_0000, 0x18_0000, 0x1f_0000
REQ, RES, BURST, PKT, SYNC, ACK, NAK = range(1, 8)


class Memory(Region):
    """Host memory."""

    def __init__(self):
        super().__init__(MEMORY_BYTES)
        self.data = bytearray(MEMORY_BYTES)
        self.refuses_reads = False

    async def _read(self, address, length, **_):
        if self.refuses_reads:
            raise RuntimeError("refused")
        return bytes(self.data[address:address + length])

    async def _write(self, address, data, **_):
        self.data[address:address + len(data)] = data

    def word(self, address):
        return int.from_bytes(self.data[address:address + 8], "little")


class Peer(Region):
    """The BAR of card 1: what the card writes there, message by message."""

    def __init__(self, card):
        super().__init__(0x1_0000)
        self.card = card
        self.there = True
        self.messages = []      # (type, high words, low words)
        self.burst = b""
        self.arrived = Event()

    async def _write(self, address, data, **_):
        if not self.there:
            raise RuntimeError("nobody")
        assert len(data) % 8 == 0 and address % 8 == 0
        if address >> 12 == 8 + OWN:
            if address & 0xfff == 0:
                self.burst = b""
            self.burst += bytes(data)
        else:
            assert address >> 12 == 1 and (address >> 6) & 0x3f == OWN and len(data) == 8, hex(address)
            word = int.from_bytes(data, "little")
            kind = word >> 60
            assert (word >> 52) & 0xf == OWN and (word >> 48) & 0xf == PEER
            assert address & 0x3f == {REQ: 0, RES: 8}.get(kind, 16)
            self.messages.append((kind, (word >> 16) & 0xffff, word & 0xffff))
        self.arrived.set()

    async def _read(self, address, length, **_):
        raise RuntimeError("a card is not read")

    async def until(self, condition):
        """Waits until what has arrived meets a condition; gives its result."""
        while not (found := condition()):
            self.arrived.clear()
            await with_timeout(self.arrived.wait(), 100, "us")
        return found

    async def message(self, kind):
        """Waits for a message of a kind and takes it."""
        found = await self.until(lambda: next((m for m in self.messages if m[0] == kind), None))
        self.messages.remove(found)
        return found

    async def send(self, kind, high=0, low=0):
        word = kind << 60 | PEER << 52 | OWN << 48 | high << 16 | low
        await self.card.write(0x1000 + 0x40 * PEER + {REQ: 0, RES: 8}.get(kind, 16), word)

    async def send_burst(self, frames):
        """Frames by class, high and low, with a null trailing REQ."""
        words = b""
        for high, group in ((1, frames[0]), (0, frames[1])):
            for frame in group:
                words += word(PKT << 60 | PEER << 52 | OWN << 48 | high << 11 | len(frame)) + padded(frame)
        head = len(frames[0]) << 24 | len(frames[1]) << 16 | len(words) // 8
        tail = REQ << 60 | 0b11 << 58 | PEER << 52 | OWN << 48
        burst = word(BURST << 60 | PEER << 52 | OWN << 48 | head) + words + word(tail)
        # A sequence begins at the window's first word, and no other one does.
        window = 0x8000 + 0x1000 * PEER
        await self.card.axi.write(window, burst[:4096])
        for at in range(4096, len(burst), 4088):
            await self.card.axi.write(window + 8, burst[at:at + 4088])

    def parse_burst(self):
        """A whole burst as ([high frames], [low frames], trailing REQ), or None while it is not whole."""
        data = self.burst
        if len(data) < 16:
            return None
        head = int.from_bytes(data[:8], "little")
        end = 8 + 8 * (head & 0xffff)
        if len(data) < end + 8:
            return None
        assert head >> 60 == BURST and len(data) == end + 8
        frames, at = ([], []), 8
        while at < end:
            packet = int.from_bytes(data[at:at + 8], "little")
            length = packet & 0x7ff
            assert packet >> 60 == PKT
            frames[1 - (packet >> 11 & 1)].append(data[at + 8:at + 8 + length])
            at += 8 + (length + 7) // 8 * 8
        assert (len(frames[0]), len(frames[1])) == (head >> 24 & 0xff, head >> 16 & 0xff)
        tail = int.from_bytes(data[end:], "little")
        assert tail >> 60 == REQ and tail >> 59 & 1
        self.burst = b""
        return frames[0], frames[1], tail


class Card:
    """The card with its models."""

    def __init__(self, dut):
        self.dut = dut
        for clock, period_ps in ((dut.clk, 15_000), (dut.gmii_rx_clk, 8_002), (dut.gmii_tx_clk, 7_998)):
            Clock(clock, period_ps, "ps").start()
        self.axi = AxiMaster(AxiBus.from_prefix(dut, "s_axi"), dut.clk, dut.arst)
        self.memory = Memory()
        self.peer = Peer(self)
        space = AddressSpace(2**32)
        space.register_region(self.memory, 0)
        space.register_region(self.peer, PEER_BAR)
        self.slave = AxiSlave(AxiBus.from_prefix(dut, "m_axi"), dut.clk, dut.arst, target=space)
        self.line_in = GmiiSource(dut.gmii_rxd, dut.gmii_rx_er, dut.gmii_rx_dv, dut.gmii_rx_clk, dut.rx_arst)
        self.line_out = GmiiSink(dut.gmii_txd, dut.gmii_tx_er, dut.gmii_tx_en, dut.gmii_tx_clk, dut.tx_arst)
        self.taken = [0, 0]     # receive descriptors, by class
        self.posted = 0

    async def reset(self):
        resets = (self.dut.arst, self.dut.rx_arst, self.dut.tx_arst)
        for value in (0, 1, 0):
            for reset in resets:
                reset.value = value
            await ClockCycles(self.dut.clk, 20)

    async def write(self, offset, value):
        response = await self.axi.write(offset, word(value))
        assert response.resp == 0, hex(offset)

    async def read(self, offset):
        response = await self.axi.read(offset, 8)
        assert response.resp == 0, hex(offset)
        return int.from_bytes(response.data, "little")

    async def counter(self, name):
        """What has been counted since the set-up, when all is quiet."""
        await ClockCycles(self.dut.clk, 100)
        return await self.read(REG["COUNTERS"] + 8 * EVENT[name]) - self.before[name]

    async def set_up(self, present=True):
        """What a driver does: rings, a route to network 10.0.1.0/24 by card 1, both classes by ToS 0xb8."""
        await self.reset()
        await self.write(REG["OWN_ID"], OWN)
        await self.write(REG["OWN_MAC"], register(MAC[OWN]))
        await self.write(REG["PATIENCE"], 256)
        for ring in range(2):
            at = ring * REG["RX_TAIL_STRIDE"]
            await self.write(REG["RX_DESC_BASE"] + at, DESCRIPTORS + 0x800 * ring)
            await self.write(REG["RX_BUFFER_BASE"] + at, BUFFERS + 0x8_0000 * ring)
            await self.write(REG["RX_TAIL"] + at, 256)
        await self.write(REG["TX_DONE_ADDRESS"], DONE)
        if present:
            await self.write(REG["PEER_BASE"] + 8 * PEER, PEER_BAR | BIT["PEER_PRESENT"])
        routes = [
            (0xffffffff_0a000001, BIT["ROUTE_VALID"] | BIT["ROUTE_HOST"], 0, 0),
            (0xffffff00_0a000100, BIT["ROUTE_VALID"] | BIT["ROUTE_EDGES"] | PEER, register(NEXT_HOP), register(MAC[PEER])),
        ] + 14 * [(0, 0, 0, 0)]
        for n, route in enumerate(routes):
            for k, value in enumerate(route):
                await self.write(REG["ROUTE"] + 32 * n + 8 * k, value)
        for n in range(8):
            rule = (0, BIT["CLASS_ENABLE"] | 0xb800, 0, 0xfc00) if n in (OWN, PEER) else (0, 0, 0, 0)
            for k, value in enumerate(rule):
                await self.write(REG["CLASS"] + 32 * n + 8 * k, value)
        await self.write(REG["POLICY"], BIT["POLICY_WRITE_SOURCE_MAC"])
        await self.write(REG["RULES"], 1)
        # A reset leaves the counters.
        events = [name for name in EVENT if name != "DROP_FIFO"]
        self.before = {name: await self.read(REG["COUNTERS"] + 8 * EVENT[name]) for name in events}
        await self.write(REG["CONTROL"], BIT["CONTROL_ENABLE"])

    async def link(self):
        """Plays the peer's part in establishing both directions."""
        # A card that was enabled says so.
        await self.peer.message(NAK)
        await self.peer.message(SYNC)
        await self.peer.send(ACK)
        await self.peer.send(SYNC)
        await self.peer.message(ACK)

    async def receive(self, frame):
        """Puts a frame on the line, with its check sequence."""
        await self.line_in.send(GmiiFrame.from_payload(frame))

    async def uploaded(self, ring):
        """The next frame in a receive ring."""
        lap, index = divmod(self.taken[ring], 256)
        at = DESCRIPTORS + 0x800 * ring + 8 * index
        for _ in range(2_000):
            descriptor = self.memory.word(at)
            if descriptor & 0x7ff and descriptor >> 63 == 1 - lap % 2:
                assert descriptor >> 62 & 1 == ring
                self.taken[ring] += 1
                buffer = BUFFERS + 0x8_0000 * ring + 2_048 * index
                return bytes(self.memory.data[buffer:buffer + (descriptor & 0x7ff)])
            await ClockCycles(self.dut.clk, 10)
        raise AssertionError(f"no frame in ring {ring}")

    async def post(self, frame):
        """Posts a frame for transmission."""
        at = SENT + 2_048 * (self.posted % 64)
        self.memory.data[at:at + len(frame)] = frame
        await self.write(REG["TX_POST"], self.posted << 48 | len(frame) << 32 | at)
        self.posted += 1

    async def sent(self):
        """The next frame that leaves the port, its check sequence and preamble checked."""
        frame = await with_timeout(self.line_out.recv(), 200, "us")
        assert frame.check_fcs()
        return bytes(frame.get_payload())


def word(value):
    return value.to_bytes(8, "little")


def register(mac):
    return int.from_bytes(mac, "little")


def padded(frame):
    return frame + bytes(-len(frame) % 8)


def checksum(header):
    total = sum(int.from_bytes(header[i:i + 2], "big") for i in range(0, len(header), 2))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return 0xffff - total


def packet(dst, length=60, tos=0, ttl=64, to=MAC[OWN], fill=0):
    """An Ethernet frame with an IPv4 packet, without check sequence."""
    head = bytearray([0x45, tos]) + (length - 14).to_bytes(2, "big") + bytes([0, fill & 0xff, 0, 0, ttl, 17, 0, 0])
    head += bytes([10, 0, 0, 2]) + bytes(int(part) for part in dst.split("."))
    head[10:12] = checksum(head).to_bytes(2, "big")
    body = bytes((fill + n) & 0xff for n in range(length - 34))
    return bytes(to + bytes.fromhex("0200000000aa") + b"\x08\x00" + head + body)


def forwarded(frame, source=MAC[PEER], next_hop=NEXT_HOP):
    """What RFC 1812 makes of it: addresses, TTL, checksum computed anew."""
    head = bytearray(frame[14:34])
    head[8] -= 1
    head[10:12] = b"\0\0"
    head[10:12] = checksum(head).to_bytes(2, "big")
    return next_hop + source + frame[12:14] + bytes(head) + frame[34:]
