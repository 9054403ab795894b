// One end of a tunnel: IP packets that the host sends by an interface of the router's own go to the other end in UDP
// datagrams, and come out of its interface there. The other end runs the same, with the addresses the other way round.
//
//   causeway run conf/tunnel.click -D local=192.0.2.1 -D remote=192.0.2.2 -D addr=10.8.0.1/24
//   causeway run conf/tunnel.click -D local=192.0.2.2 -D remote=192.0.2.1 -D addr=10.8.0.2/24
//
// It neither hides nor proves anything: for that there is WireGuard. Only datagrams from the other end's address are let
// in. The interface's MTU is that of Ethernet without 20 bytes of IP header and 8 of UDP.

define($local 192.0.2.1, $remote 192.0.2.2, $port 4789, $addr 10.8.0.1/24, $dev tunnel0, $mtu 1472)

tun :: KernelTun($addr, DEVNAME $dev, MTU $mtu);
udp :: Socket(UDP, $remote, $port, $local, $port, CLIENT true);

// What the host says by IPv6 stays here.
tun -> version :: Classifier(0/40%f0, -);
version [0] -> sent :: Counter -> udp;
version [1] -> Discard;
udp -> CheckIPHeader(VERBOSE false) -> received :: Counter -> tun;
