#!/usr/bin/env python3
"""A cable between two TUNs or TAPs: cable.py tun|tap NAMESPACE INTERFACE NAMESPACE INTERFACE, until it is killed."""
import ctypes
import fcntl
import os
import select
import struct
import sys

TUNSETIFF, IFF_TUN, IFF_TAP, IFF_NO_PI = 0x400454CA, 1, 2, 0x1000
CLONE_NEWNET = 0x40000000
LONGEST = 1 << 16


def opened(mode, namespace, name):
    """A TUN or TAP of a namespace; this process is there afterwards."""
    with open(namespace, "rb") as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), namespace)
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    flags = (IFF_TUN if mode == "tun" else IFF_TAP) | IFF_NO_PI
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", name.encode(), flags))
    return device


def main():
    mode = sys.argv[1]
    ends = [opened(mode, sys.argv[at], sys.argv[at + 1]) for at in (2, 4)]
    other = dict(zip(ends, reversed(ends)))
    print("ready", flush=True)
    while True:
        ready, _, _ = select.select(ends, [], [])
        for end in ready:
            try:
                while True:
                    os.write(other[end], os.read(end, LONGEST))
            except OSError:
                # Nothing more for now, or an end that is down.
                pass


if __name__ == "__main__":
    main()
