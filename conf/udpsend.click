// Sends UDP packets by an interface, $rate a second for $limit packets, then stops.
//
//   causeway run conf/udpsend.click -D dev=eth1 -D src=10.0.0.2 -D dst=10.0.1.2 -D to=02:00:00:00:00:01 \
//                                   -D from=02:00:00:00:00:02
//
// The packets go to the Ethernet address $to, which is the router's or the receiver's: nobody is asked by ARP.

define($dev eth1, $rate 10000, $limit 100000,
       $from 02:00:00:00:00:02, $src 10.0.0.2, $to 02:00:00:00:00:01, $dst 10.0.1.2, $port 1234)

FastUDPSource($rate, $limit, 60, $from, $src, 1234, $to, $dst, $port)
  -> sent :: Counter(COUNT_CALL $limit stop)
  -> out :: ToDevice($dev, METHOD PACKET);
