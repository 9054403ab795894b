#!/usr/bin/env python3
"""Numbered datagrams, sent at an even pace and noted when they arrive.

    probe.py send FILE PER_SECOND ADDRESS...   one stream to each address, until SIGTERM
    probe.py receive FILE                      until SIGTERM

Times are of the monotonic clock, which is the same in all namespaces. A record of FILE is stream, number, when it was sent
and, where it is received, when it arrived, in nanoseconds.
"""
import ctypes
import select
import signal
import socket
import struct
import sys
import time

PORT = 7007
PACKET = struct.Struct("!4sBIQ")
RECORD = struct.Struct("=BIQQ")
MARK = b"cwdp"
TICK_S = 0.001
# A sender that did not run for a while does not make up for it: it would fill queues that are not what is looked at.
MOST_TICKS_BEHIND = 4
running = True


def stop(*_):
    global running
    running = False


def small_slack():
    """The kernel wakes this process within a microsecond of the time that it asked for, and not 50."""
    PR_SET_TIMERSLACK = 29
    ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0)


def send(file, per_second, addresses):
    small_slack()
    sockets = {family: socket.socket(family, socket.SOCK_DGRAM) for family in (socket.AF_INET, socket.AF_INET6)}
    streams = [(number, sockets[socket.AF_INET6 if ":" in address else socket.AF_INET], (address, PORT))
               for number, address in enumerate(addresses)]
    per_tick, owed, number = per_second * TICK_S, 0.0, 0
    with open(file, "wb") as output:
        due = time.monotonic()
        while running:
            now = time.monotonic()
            if now < due:
                time.sleep(due - now)
            due = max(due + TICK_S, now - MOST_TICKS_BEHIND * TICK_S)
            owed += per_tick
            while owed >= 1:
                owed -= 1
                for stream, sender, address in streams:
                    sent_ns = time.monotonic_ns()
                    try:
                        sender.sendto(PACKET.pack(MARK, stream, number, sent_ns), address)
                    except OSError:
                        # There is no way for it in this namespace, or the way has just gone: it is lost.
                        pass
                    output.write(RECORD.pack(stream, number, sent_ns, 0))
                number += 1


def receive(file):
    listeners = []
    for family, anywhere in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
        listener = socket.socket(family, socket.SOCK_DGRAM)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        SO_RCVBUFFORCE = 33
        listener.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20)
        listener.bind((anywhere, PORT))
        listener.setblocking(False)
        listeners.append(listener)
    with open(file, "wb") as output:
        print("listening", flush=True)
        while running:
            ready, _, _ = select.select(listeners, [], [], 0.1)
            for listener in ready:
                while True:
                    try:
                        packet = listener.recv(2048)
                    except BlockingIOError:
                        break
                    now_ns = time.monotonic_ns()
                    if len(packet) != PACKET.size or packet[:4] != MARK:
                        # Something that nobody sent: a stream of its own.
                        output.write(RECORD.pack(255, 0, now_ns, now_ns))
                        continue
                    _, stream, number, sent_ns = PACKET.unpack(packet)
                    output.write(RECORD.pack(stream, number, sent_ns, now_ns))


def main():
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    if sys.argv[1] == "send":
        send(sys.argv[2], float(sys.argv[3]), sys.argv[4:])
    else:
        receive(sys.argv[2])


if __name__ == "__main__":
    main()
