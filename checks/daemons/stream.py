#!/usr/bin/env python3
"""Streams of TCP whose bytes are known: stream.py take BYTES, stream.py give BYTES ADDRESS...

The taker waits for two, and fails if an octet is wrong or missing.
"""
import socket
import sys

PORT, LIMIT_S, STREAMS = 7008, 20, 2


def octets(count):
    block = bytes(range(251))
    return (block * (count // len(block) + 1))[:count]


def give(count, addresses):
    for address in addresses:
        with socket.create_connection((address, PORT), timeout=LIMIT_S) as connection:
            connection.sendall(octets(count))
            connection.shutdown(socket.SHUT_WR)
            # The other end closes when it has all.
            connection.recv(1)
    return 0


def take(count):
    wrong = 0
    with socket.create_server(("::", PORT), family=socket.AF_INET6, dualstack_ipv6=True) as listener:
        listener.settimeout(LIMIT_S)
        print("listening", flush=True)
        for _ in range(STREAMS):
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(LIMIT_S)
                parts = []
                while data := connection.recv(1 << 16):
                    parts.append(data)
            wrong += b"".join(parts) != octets(count)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(give(int(sys.argv[2]), sys.argv[3:]) if sys.argv[1] == "give" else take(int(sys.argv[2])))
