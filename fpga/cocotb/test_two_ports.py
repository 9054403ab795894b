# SPDX-License-Identifier: MIT OR Apache-2.0
"""The router of two ports, with a serial line for a host: set up and used as on a board."""

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge, Timer, with_timeout
from cocotbext.eth import GmiiFrame, GmiiSink, GmiiSource

from bench import BIT, MAC, REG, forwarded, packet, register

BIT_NS = 40 * 16   # UART_CLOCKS is 40, the clock 16 ns
BAR_BASE = 0x8000_0000
HOPS = [bytes.fromhex("020000000100"), bytes.fromhex("020000000101")]


class Lines:
    """One bit of a vector as a signal."""

    def __init__(self, signal, index):
        self.signal, self.index = signal, index


class Serial:
    """The other end of the serial line."""

    def __init__(self, dut):
        self.dut = dut
        dut.uart_rxd.value = 1

    async def send(self, data):
        for byte in data:
            for bit in [0] + [byte >> n & 1 for n in range(8)] + [1]:
                self.dut.uart_rxd.value = bit
                await Timer(BIT_NS, "ns")

    async def receive(self, count):
        data = b""
        for _ in range(count):
            while self.dut.uart_txd.value == 1:
                await RisingEdge(self.dut.clk)
            await Timer(BIT_NS * 3 // 2, "ns")
            byte = 0
            for n in range(8):
                byte |= int(self.dut.uart_txd.value) << n
                await Timer(BIT_NS, "ns")
            assert self.dut.uart_txd.value == 1
            data += bytes([byte])
        return data

    async def ask(self, command, count):
        answer = cocotb.start_soon(self.receive(count))
        await self.send(command)
        return await with_timeout(answer, 50 * BIT_NS * (count + 2), "ns")

    async def write(self, nic, offset, value):
        command = b"W" + (BAR_BASE + 0x1_0000 * nic + offset).to_bytes(4, "little") + value.to_bytes(8, "little")
        assert await self.ask(command, 1) == b"K", hex(offset)

    async def read(self, nic, offset):
        answer = await self.ask(b"R" + (BAR_BASE + 0x1_0000 * nic + offset).to_bytes(4, "little"), 9)
        assert answer[:1] == b"K"
        return int.from_bytes(answer[1:], "little")


async def phy(dut, seen):
    """A PHY that reads frames of clause 22 and answers reads with 0xa5c3."""
    bits, answer = [], 0
    while True:
        await RisingEdge(dut.mdc)
        await ReadOnly()
        released = dut.mdio_t.value == 1
        bits.append(1 if released else int(dut.mdio_o.value))
        if len(bits) >= 64 and bits[-64:-32] == [1] * 32 and bits[-32:-30] == [0, 1]:
            frame = int("".join(map(str, bits[-32:])), 2)
            seen.append(frame)
            bits = []
        await Timer(1, "ns")
        # The bit for the next rising edge: after the header of a read, turnaround and data.
        at = len(bits) - 32 if bits[:32] == [1] * 32 else 0
        dut.mdio_i.value = (0xa5c3 >> (31 - at)) & 1 if at >= 16 else 1


@cocotb.test()
async def two_ports_are_set_up_over_the_serial_line_and_route(dut):
    Clock(dut.clk, 16_000, "ps").start()
    Clock(dut.tx_clk, 8_000, "ps").start()
    Clock(dut.rx_clk_0, 8_002, "ps").start()
    Clock(dut.rx_clk_1, 7_998, "ps").start()
    for value in (0, 1, 0):
        dut.arst.value = value
        await ClockCycles(dut.clk, 20)
    sources = [GmiiSource(getattr(dut, f"rxd_{n}"), getattr(dut, f"rx_er_{n}"), getattr(dut, f"rx_dv_{n}"),
                          getattr(dut, f"rx_clk_{n}"), dut.arst) for n in range(2)]
    sinks = [GmiiSink(getattr(dut, f"txd_{n}"), getattr(dut, f"tx_er_{n}"), getattr(dut, f"tx_en_{n}"), dut.tx_clk,
                      dut.arst) for n in range(2)]
    serial = Serial(dut)
    assert await serial.ask(b"x", 1) == b"?"
    # Nobody is at this address.
    assert await serial.ask(b"R" + (0x9000_0000).to_bytes(4, "little"), 1) == b"E"
    for nic in range(2):
        assert await serial.read(nic, REG["ID"]) >> 32 == 0x43415553
        peer = 1 - nic
        for offset, value in [
            (REG["OWN_ID"], nic),
            (REG["OWN_MAC"], register(MAC[nic])),
            (REG["PEER_BASE"] + 8 * peer, BAR_BASE + 0x1_0000 * peer | BIT["PEER_PRESENT"]),
            (REG["ROUTE"], 0xffffff00_0a000000 | peer << 8),
            (REG["ROUTE"] + 8, BIT["ROUTE_VALID"] | peer),
            (REG["ROUTE"] + 16, register(HOPS[peer])),
            (REG["ROUTE"] + 24, register(MAC[peer])),
            (REG["POLICY"], BIT["POLICY_WRITE_SOURCE_MAC"]),
            (REG["RULES"], 1),
            (REG["CONTROL"], BIT["CONTROL_ENABLE"]),
        ]:
            await serial.write(nic, offset, value)
    frames = [[packet(f"10.0.{1 - nic}.7", 60 + 97 * n, to=MAC[nic], fill=n) for n in range(6)] for nic in range(2)]
    for n in range(6):
        for nic in range(2):
            await sources[nic].send(GmiiFrame.from_payload(frames[nic][n]))
    for nic in range(2):
        for frame in frames[nic]:
            seen = await with_timeout(sinks[1 - nic].recv(), 100, "us")
            assert seen.check_fcs()
            assert bytes(seen.get_payload()) == forwarded(frame, MAC[1 - nic], HOPS[1 - nic])


@cocotb.test()
async def management_frames_reach_the_phys(dut):
    Clock(dut.clk, 16_000, "ps").start()
    for value in (0, 1, 0):
        dut.arst.value = value
        await ClockCycles(dut.clk, 20)
    seen = []
    dut.mdio_i.value = 1
    cocotb.start_soon(phy(dut, seen))
    serial = Serial(dut)
    write = 0b01_01_00001_00100_10 << 16 | 0x01e1
    assert (await serial.ask(b"M" + write.to_bytes(4, "little"), 3))[:1] == b"K"
    assert seen == [write]
    read = 0b01_10_00001_00010_10 << 16
    answer = await serial.ask(b"M" + read.to_bytes(4, "little"), 3)
    assert answer == b"K" + (0xa5c3).to_bytes(2, "little"), answer
