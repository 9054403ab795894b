// Pings a host as ping(8) does, through a raw socket: reports on standard error, and a summary at the end.
//
//   causeway run conf/ping.click -D src=192.0.2.1 -D dst=192.0.2.2
//
// $src is an address of this machine.

define($src 127.0.0.1, $dst 127.0.0.1, $limit 5, $interval 1, $verbose true)

ping :: ICMPPingSource($src, $dst, INTERVAL $interval, LIMIT $limit, IDENTIFIER 4711, STOP true, VERBOSE $verbose)
  -> Queue -> socket :: RawSocket(icmp);
socket -> IPClassifier(icmp type echo-reply) -> ping;
