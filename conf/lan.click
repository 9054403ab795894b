// A host on an Ethernet that is made of multicast: it answers ARP requests for its address, and pings. Any number of
// routers and virtual machines on any number of machines share the Ethernet:
//
//   causeway run conf/lan.click -D ip=10.0.0.1 -D mac=02:02:02:02:02:02
//   qemu-system-x86_64 -nic socket,mcast=239.0.0.1:1234,mac=02:02:02:02:02:03 ...

define($group 239.0.0.1, $port 1234, $ip 10.0.0.1, $mac 02:02:02:02:02:02)

link :: McastSocket($group, $port);

// What is sent comes back by the group: frames of its own are dropped.
link -> HostEtherFilter($mac, DROP_OWN true, DROP_OTHER true)
     -> kind :: Classifier(12/0806 20/0001,   // ARP requests
                           12/0806 20/0002,   // ARP replies
                           12/0800,           // IPv4
                           -);
kind [0] -> ARPResponder($ip $mac) -> link;
kind [1] -> [1] arp :: ARPQuerier($ip, $mac) -> link;
kind [2] -> Strip(14) -> CheckIPHeader(VERBOSE false) -> IPClassifier(icmp and dst host $ip)
         -> CheckICMPHeader(VERBOSE false) -> ICMPPingResponder -> answered :: Counter -> arp;
kind [3] -> Discard;
