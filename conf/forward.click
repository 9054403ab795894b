// An IPv4 router between two interfaces whose neighbours are known: no ARP, no answers of its own. What a machine that nobody
// has yet would do with it, the model says:
//
//   causeway model what-if server-2x100g --graph conf/forward.click
//
// It runs as it is, too: causeway run conf/forward.click -D dev0=eth1 -D dev1=eth2 -D mac0=... -D peer0=...

define($dev0 eth0, $net0 10.0.0.0/24, $mac0 02:00:00:00:00:01, $peer0 02:00:00:00:01:01,
       $dev1 eth1, $net1 10.0.1.0/24, $mac1 02:00:00:00:00:02, $peer1 02:00:00:00:01:02);

// The way out by an interface, to the neighbour behind it.
elementclass Leave { $dev, $mac, $peer |
    input -> DecIPTTL
          -> EtherEncap(0x0800, $mac, $peer)
          -> Queue(1000)
          -> ToDevice($dev);
}

enter :: Strip(14)
      -> CheckIPHeader
      -> GetIPAddress(16)
      -> routes :: IPLookup($net0 0, $net1 1);

FromDevice($dev0) -> enter;
FromDevice($dev1) -> enter;

routes [0] -> Leave($dev0, $mac0, $peer0);
routes [1] -> Leave($dev1, $mac1, $peer1);
