//! Ports: AF_XDP, AF_PACKET, TAP and TUN, pcap, memory rings; the BPF assembler and loader.
