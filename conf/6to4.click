// A translator between a network that has only IPv6 and one that has only IPv4 (RFC 7915). Hosts of the first reach those
// of the second as $prefix with the IPv4 address behind it, and have such addresses themselves, by which they are known
// there. The kernel keeps nothing of these interfaces.
//
//   causeway run conf/6to4.click -D dev6=eth1 -D addr6=2001:db8:1::1 -D mac6=02:00:00:00:00:01 \
//                                -D dev4=eth2 -D addr4=10.0.1.1/24 -D mac4=02:00:00:00:00:02
//
// Hosts with IPv6 have a route to $prefix by $addr6, those with IPv4 one to the others' addresses by $addr4. What is not
// in the network of $addr4 goes to $gateway4.

define($dev6 eth1, $addr6 2001:db8:1::1, $mac6 02:00:00:00:00:01,
       $dev4 eth2, $addr4 10.0.1.1/24, $mac4 02:00:00:00:00:02,
       $gateway4 10.0.1.2, $prefix 64:ff9b::/96);

AddressInfo(if4 $addr4 $mac4);

// IPv6: the hosts of $prefix are on the link.
FromDevice($dev6) -> kind6 :: Classifier(12/86dd 20/3aff 54/87, 12/86dd 20/3aff 54/88, 12/86dd, -);
send6 :: Queue(1000) -> ToDevice($dev6);
neighbours :: IP6NDSolicitor($addr6, $mac6) -> send6;
neighbours [1] -> send6;
kind6 [0] -> IP6NDAdvertiser($addr6 $mac6) -> send6;
kind6 [1] -> [1] neighbours;
kind6 [3] -> Discard;

// IPv4.
FromDevice($dev4) -> kind4 :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
send4 :: Queue(1000) -> ToDevice($dev4);
arp :: ARPQuerier(if4) -> send4;
arp [1] -> send4;
kind4 [0] -> ARPResponder(if4:ip if4:eth) -> send4;
kind4 [1] -> [1] arp;
kind4 [3] -> Discard;
routes4 :: StaticIPLookup(if4:ipnet 0, 0.0.0.0/0 $gateway4 0) -> arp;

// From IPv6 to IPv4.
kind6 [2] -> Strip(14)
          -> CheckIP6Header(::)
          -> hops :: DecIP6HLIM
          -> six :: ProtocolTranslator64(PREFIX $prefix)
          -> routes4;
hops [1] -> ICMP6Error($addr6, 3, 0) -> neighbours;
six [1] -> untranslated :: Counter -> Discard;

// From IPv4 to IPv6, where headers are up to 28 bytes longer.
kind4 [2] -> Strip(14)
          -> CheckIPHeader
          -> ttl :: DecIPTTL
          -> size :: IPFragmenter(1472)
          -> four :: ProtocolTranslator46(PREFIX $prefix)
          -> neighbours;
ttl [1] -> ICMPError(if4:ip, timeexceeded) -> routes4;
size [1] -> ICMPError(if4:ip, unreachable, needfrag, PMTU 1472) -> routes4;
four [1] -> untranslated;
