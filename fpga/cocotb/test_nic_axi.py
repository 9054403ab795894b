# SPDX-License-Identifier: MIT OR Apache-2.0
"""The card against models that its authors have not written."""

import random

import cocotb
from cocotb.triggers import ClockCycles, Timer, with_timeout
from cocotbext.eth import GmiiFrame

from bench import ACK, MAC, NAK, PEER, REG, REQ, RES, SYNC, Card, forwarded, packet, word


async def start(dut, **options):
    card = Card(dut)
    await card.set_up(**options)
    return card


def with_pauses(card, seed):
    """The models of AXI are not always ready."""
    rng = random.Random(seed)

    def pauses():
        while True:
            yield rng.random() < 0.3

    card.slave.write_if.aw_channel.set_pause_generator(pauses())
    card.slave.write_if.w_channel.set_pause_generator(pauses())
    card.slave.write_if.b_channel.set_pause_generator(pauses())
    card.slave.read_if.ar_channel.set_pause_generator(pauses())
    card.slave.read_if.r_channel.set_pause_generator(pauses())
    card.axi.write_if.w_channel.set_pause_generator(pauses())
    card.axi.read_if.r_channel.set_pause_generator(pauses())


@cocotb.test()
async def registers_are_read_back_and_only_whole_words_are_written(dut):
    card = await start(dut, present=False)
    assert await card.read(REG["ID"]) >> 48 == 0x4341
    assert await card.read(REG["OWN_MAC"]) == int.from_bytes(MAC[0], "little")
    assert await card.read(REG["ROUTE"] + 32) == 0xffffff00_0a000100
    response = await card.axi.read(REG["ROUTE"], 64)
    assert response.resp == 0 and response.data[:8] == word(0xffffffff_0a000001)
    assert response.data[32:40] == word(0xffffff00_0a000100)
    assert (await card.axi.write(REG["GRANT_MIN_WORDS"], b"\x55")).resp == 2
    assert await card.read(REG["GRANT_MIN_WORDS"]) == 0
    assert (await card.axi.read(0x1000, 8)).resp == 2
    await card.write(REG["CONTROL"], 0)
    assert (await card.axi.write(0x1000 + 0x40 * PEER, word(SYNC << 60 | PEER << 52))).resp == 2


@cocotb.test()
async def frames_of_all_lengths_reach_the_host_by_class(dut):
    card = await start(dut, present=False)
    with_pauses(card, 1)
    lengths = [60, 61, 67, 68, 127, 256, 511, 1513, 1514]
    frames = [packet("192.0.2.1", length, 0xb8 * (n % 2), fill=n) for n, length in enumerate(lengths)]
    frames.append(bytes.fromhex("ffffffffffff0200000000aa0806") + bytes(46))
    for frame in frames:
        await card.receive(frame)
    for n, frame in enumerate(frames):
        assert await card.uploaded(n % 2 if n < len(lengths) else 0) == frame, n
    assert await card.counter("RX_TO_HOST") == len(frames)


@cocotb.test()
async def what_is_wrong_on_the_line_is_counted_and_nothing_else(dut):
    card = await start(dut, present=False)
    good = packet("192.0.2.1", 100, fill=3)
    broken = GmiiFrame.from_payload(good)
    broken.data[40] ^= 1
    signalled = GmiiFrame.from_payload(good)
    signalled.error = [int(n == 50) for n in range(len(signalled.data))]
    runt = GmiiFrame.from_payload(good[:59], min_len=0)
    # A tag is four bytes more; no frame is longer.
    tagged = good[:12] + b"\x81\x00\x00\x05" + good[12:] + bytes(1518 - len(good) - 4)
    for frame in (broken, signalled, runt, GmiiFrame.from_payload(tagged), GmiiFrame.from_payload(tagged + b"\0")):
        await card.line_in.send(frame)
    await card.receive(good)
    assert await card.uploaded(0) == tagged
    assert await card.uploaded(0) == good
    counted = [await card.counter(name) for name in ("RX_FRAMES", "RX_BAD_FCS", "RX_BAD_LENGTH", "RX_TO_HOST")]
    assert counted == [6, 2, 2, 2], counted


@cocotb.test()
async def what_the_host_posts_leaves_padded_and_is_reported(dut):
    card = await start(dut, present=False)
    with_pauses(card, 2)
    # The last crosses a 4 KiB boundary nowhere; the first is padded to 60 bytes.
    frames = [bytes((n + k) & 0xff for k in range(length)) for n, length in enumerate((14, 59, 60, 65, 777, 1513, 1514))]
    for frame in frames:
        await card.post(frame)
    for frame in frames:
        assert await card.sent() == frame + bytes(max(0, 60 - len(frame)))
    while card.memory.word(0x1f_0000) & 0xffff != len(frames):
        await ClockCycles(dut.clk, 10)
    assert card.memory.word(0x1f_0000) == (len(frames) - 1) << 16 | len(frames)
    # A read that is refused costs its frame and no other.
    card.memory.refuses_reads = True
    await card.post(frames[3])
    await Timer(5, "us")
    card.memory.refuses_reads = False
    await card.post(frames[4])
    assert await card.sent() == frames[4]
    assert await card.counter("TX_FAILED") == 1


@cocotb.test()
async def a_peer_gets_what_it_grants_high_class_first(dut):
    card = await start(dut)
    with_pauses(card, 3)
    await card.link()
    frames = [packet("10.0.1.7", 60 + 31 * n, 0xb8 * (n % 2), fill=n) for n in range(8)]
    for frame in frames:
        await card.receive(frame)
    # All but those that were in the FIFOs when the REQ was sent are asked for by trailing ones.
    kind, high, low = await card.peer.message(REQ)
    seen = ([], [])
    while high or low:
        await card.peer.send(RES, high, low)
        burst = await card.peer.until(card.peer.parse_burst)
        used = [sum(8 * (1 + (len(frame) + 7) // 8) for frame in group) for group in burst[:2]]
        assert used[0] <= high and used[1] <= low
        for all_frames, group in zip(seen, burst):
            all_frames.extend(group)
        high, low = burst[2] >> 16 & 0xffff, burst[2] & 0xffff
        assert (burst[2] >> 58 & 1) == (high == low == 0)
        if not (high or low) and len(seen[0]) + len(seen[1]) < len(frames):
            kind, high, low = await card.peer.message(REQ)
    assert seen[0] == [forwarded(frame) for frame in frames[1::2]]
    assert seen[1] == [forwarded(frame) for frame in frames[::2]]
    assert await card.counter("RX_FAST") == len(frames)
    # A grant of nothing is answered by an empty burst that asks again.
    await card.receive(frames[0])
    await card.peer.message(REQ)
    await card.peer.send(RES, 0, 0)
    empty = await card.peer.until(card.peer.parse_burst)
    assert empty[:2] == ([], []) and empty[2] & 0xffff == 72


@cocotb.test()
async def a_full_burst_is_longer_than_an_axi_transaction(dut):
    card = await start(dut)
    await card.link()
    frames = [packet("10.0.1.9", 1514, fill=n) for n in range(5)]
    for frame in frames:
        await card.receive(frame)
    await Timer(80, "us")
    _, high, low = await card.peer.message(REQ)
    await card.peer.send(RES, 0, low)
    first = await card.peer.until(card.peer.parse_burst)
    await card.peer.send(RES, 0, first[2] & 0xffff)
    second = await card.peer.until(card.peer.parse_burst)
    assert len(second[1]) == 4
    assert first[1] + second[1] == [forwarded(frame) for frame in frames]
    assert await card.counter("BURSTS_SENT") == 2


@cocotb.test()
async def frames_of_a_peer_leave_the_port(dut):
    card = await start(dut)
    with_pauses(card, 4)
    await card.link()
    high = [packet("10.0.0.7", 100 + n, fill=n) for n in range(3)]
    low = [packet("10.0.0.7", 1514 - n, fill=n) for n in range(4)]
    await card.peer.send(REQ, 15_000, 15_000)
    _, granted_high, granted_low = await card.peer.message(RES)
    assert (granted_high, granted_low) == (15_000, 360)
    await card.peer.send_burst((high, []))
    await card.peer.send(REQ, 0, 8 * 800)
    assert await card.peer.message(RES) == (RES, 0, 8 * 800)
    await card.peer.send_burst(([], low))
    for frame in high + low:
        assert await card.sent() == frame


@cocotb.test()
async def a_burst_without_grant_is_refused_and_told(dut):
    card = await start(dut)
    await card.link()
    await card.peer.send_burst(([], [packet("10.0.0.7", 100)]))
    await card.peer.message(NAK)
    assert await card.counter("DROP_STALE") == 1
    assert await card.counter("TX_FAST") == 0
    # After a SYNC it is heard again.
    await card.peer.send(SYNC)
    await card.peer.message(ACK)
    await card.peer.send(REQ, 0, 800)
    assert await card.peer.message(RES) == (RES, 0, 800)


@cocotb.test()
async def a_peer_that_refuses_all_writes_goes_down_and_its_frames_to_the_host(dut):
    card = await start(dut)
    await card.link()
    card.peer.there = False
    frame = packet("10.0.1.7", 80)
    await card.receive(frame)
    await Timer(20, "us")
    assert await card.read(REG["PEER_STATE"]) >> 4 * PEER & 1 == 0
    assert await card.counter("DROP_PEER_DOWN") == 1
    await card.receive(frame)
    assert await card.uploaded(0) == frame
    assert await card.counter("SLOW_NO_PORT") == 1
    # It is tried again by itself.
    card.peer.there = True
    await with_timeout(card.peer.message(SYNC), 500, "us")
    await card.peer.send(ACK)
    await Timer(2, "us")
    await card.receive(frame)
    await card.peer.message(REQ)
