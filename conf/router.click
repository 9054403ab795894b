// An IPv4 router between two interfaces, in the shape of the standard Click router: it has addresses of its own,
// answers ARP and pings, and sends every ICMP error that a router owes. The kernel keeps nothing of these interfaces:
// `causeway up` is the router that shares them with the kernel.
//
//   causeway run conf/router.click -D dev0=eth1 -D addr0=10.0.0.1/24 -D mac0=02:00:00:00:00:01 \
//                                  -D dev1=eth2 -D addr1=10.0.1.1/24 -D mac1=02:00:00:00:00:02
//
// The Ethernet addresses are those that the router answers ARP with: let them be the interfaces' own. What neither
// network covers goes to $gateway by the second interface.

define($dev0 eth1, $addr0 10.0.0.1/24, $mac0 02:00:00:00:00:01, $mtu0 1500,
       $dev1 eth2, $addr1 10.0.1.1/24, $mac1 02:00:00:00:00:02, $mtu1 1500,
       $gateway 10.0.1.2);

AddressInfo(if0 $addr0 $mac0, if1 $addr1 $mac1);

// The Ethernet side of an interface. Input: IP packets to send, with the next hop in their annotation.
// Outputs: IP packets that came in, with their Ethernet headers; ARP replies, for the host; ICMP errors about packets
// whose next hop does not answer.
elementclass Link { $dev, $if, $color |
    FromDevice($dev) -> kind :: Classifier(12/0806 20/0001,   // ARP requests
                                           12/0806 20/0002,   // ARP replies
                                           12/0800,           // IPv4
                                           -);
    send :: Queue(1000) -> ToDevice($dev);
    arp :: ARPQuerier($if) -> send;
    arp [1] -> send;
    arp [2] -> ICMPError($if:ip, unreachable, host) -> [2] output;

    input -> arp;
    kind [0] -> ARPResponder($if:ip $if:eth) -> send;
    kind [1] -> replies :: Tee(2);
    replies [0] -> [1] arp;
    replies [1] -> [1] output;
    kind [2] -> Paint($color) -> [0] output;
    kind [3] -> Print("$dev, not IP") -> Discard;
}

// What a router does to a packet before it leaves by an interface. Output 0: packets to send; 1: ICMP errors.
elementclass Leave { $ip, $net, $color, $mtu |
    input -> DropBroadcasts
          -> redirect :: PaintTee($color)       // came by the interface it leaves by: its sender knows no better
          -> options :: IPGWOptions($ip)
          -> FixIPSrc($ip)
          -> ttl :: DecIPTTL
          -> fragment :: IPFragmenter($mtu)
          -> [0] output;
    redirect [1] -> ICMPError($net, redirect, host) -> [1] output;
    options [1] -> ICMPError($ip, parameterproblem) -> [1] output;
    ttl [1] -> ICMPError($ip, timeexceeded) -> [1] output;
    fragment [1] -> ICMPError($ip, unreachable, needfrag, PMTU $mtu) -> [1] output;
}

link0 :: Link($dev0, if0, 1);
link1 :: Link($dev1, if1, 2);
leave0 :: Leave(if0:ip, $addr0, 1, $mtu0);
leave1 :: Leave(if1:ip, $addr1, 2, $mtu1);

// To the router itself: pings are answered here, the rest goes to the host's stack by an interface of its own.
ping :: ICMPPingResponder;
host :: ToHost(causeway0);

routes :: StaticIPLookup(if0:ip 0,
                         if1:ip 0,
                         if0:ipnet 1,
                         if1:ipnet 2,
                         0.0.0.0/0 $gateway 2);

check :: Strip(14)
      -> CheckIPHeader(INTERFACES if0 if1)
      -> GetIPAddress(16)
      -> routes;

link0 [0] -> check;
link1 [0] -> check;
link0 [1] -> host;
link1 [1] -> host;
link0 [2] -> routes;
link1 [2] -> routes;

routes [0] -> ping -> routes;
routes [1] -> leave0 -> link0;
routes [2] -> leave1 -> link1;
ping [1] -> EtherEncap(0x0800, 02:00:00:00:00:fe, 02:00:00:00:00:ff) -> host;
leave0 [1] -> routes;
leave1 [1] -> routes;
