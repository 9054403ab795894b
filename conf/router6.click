// An IPv6 router between two interfaces with neighbour discovery of its own: it answers solicitations for its addresses,
// looks for its neighbours, and sends the ICMPv6 errors that a router owes. The kernel keeps nothing of these interfaces:
// `causeway up` is the router that shares them with the kernel, `causeway new router` writes one for both versions of IP.
//
//   causeway run conf/router6.click \
//     -D dev0=eth1 -D addr0=2001:db8:1::1 -D net0=2001:db8:1::/64 -D mac0=02:00:00:00:00:01 \
//     -D dev1=eth2 -D addr1=2001:db8:2::1 -D net1=2001:db8:2::/64 -D mac1=02:00:00:00:00:02
//
// The Ethernet addresses are those that the router advertises: let them be the interfaces' own. What neither network
// covers goes to $gateway by the second interface.

define($dev0 eth1, $addr0 2001:db8:1::1, $net0 2001:db8:1::/64, $mac0 02:00:00:00:00:01, $mtu0 1500,
       $dev1 eth2, $addr1 2001:db8:2::1, $net1 2001:db8:2::/64, $mac1 02:00:00:00:00:02, $mtu1 1500,
       $gateway 2001:db8:2::2);

// The Ethernet side of an interface. Input: IPv6 packets to send, with the next hop in their annotation. Output: IPv6
// packets that came in, with their Ethernet headers.
elementclass Link { $dev, $addr, $mac |
    FromDevice($dev) -> kind :: Classifier(12/86dd 20/3aff 54/87,   // neighbour solicitations
                                           12/86dd 20/3aff 54/88,   // neighbour advertisements
                                           12/86dd,                 // other IPv6
                                           -);
    send :: Queue(1000) -> ToDevice($dev);
    neighbours :: IP6NDSolicitor($addr, $mac) -> send;
    neighbours [1] -> send;

    input -> neighbours;
    kind [0] -> IP6NDAdvertiser($addr $mac) -> send;
    kind [1] -> [1] neighbours;
    kind [2] -> output;
    kind [3] -> other :: Counter -> Discard;
}

// What a router does to a packet before it leaves by an interface. Output 0: packets to send; 1: ICMPv6 errors, from
// the address of the interface.
elementclass Leave { $addr, $mtu |
    input -> DropBroadcasts
          -> hops :: DecIP6HLIM
          -> size :: IP6Fragmenter($mtu)
          -> [0] output;
    hops [1] -> ICMP6Error($addr, 3, 0) -> [1] output;
    size [1] -> ICMP6Error($addr, 2, 0, MTU $mtu) -> [1] output;
}

link0 :: Link($dev0, $addr0, $mac0);
link1 :: Link($dev1, $addr1, $mac1);
leave0 :: Leave($addr0, $mtu0);
leave1 :: Leave($addr1, $mtu1);

// What is for the router itself or for this link alone ends here.
own :: Counter -> Discard;

routes :: LookupIP6Route($addr0/128 0,
                         $addr1/128 0,
                         fe80::/10 0,
                         ff00::/8 0,
                         $net0 1,
                         $net1 2,
                         ::/0 $gateway 2);

check :: Strip(14)
      -> CheckIP6Header(::)
      -> GetIP6Address(24)
      -> routes;

link0 -> check;
link1 -> check;
routes [0] -> own;
routes [1] -> leave0 -> link0;
routes [2] -> leave1 -> link1;
leave0 [1] -> routes;
leave1 [1] -> routes;
