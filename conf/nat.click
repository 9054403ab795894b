// A NAT gateway: hosts of a network of their own share one address, from capture file to capture file.
//
//   causeway run conf/nat.click -D inside=inside.pcap -D outside=outside.pcap -D out=out.pcap -D in=in.pcap
//
// $inside and $outside hold IP packets as the two interfaces received them (ENCAP IP); $out and $in are written. TCP and
// UDP get ports of $address, pings identifiers, ICMP errors find the host that they are for, and FTP's PORT commands are
// mapped. With interfaces put FromDevice, ARPQuerier and ToDevice in the place of the files, as router.click does.

define($inside inside.pcap, $outside outside.pcap, $out out.pcap, $in in.pcap,
       $address 1.0.0.1, $capacity 65536);

nat :: IPRewriter(pattern $address 1024-65535 - - 0 1, drop, MAPPING_CAPACITY $capacity);
pings :: ICMPPingRewriter(pattern $address 1024-65535 - - 0 1, drop, MAPPING_CAPACITY $capacity);
errors :: ICMPRewriter(nat pings);

// From inside to outside.
FromDump($inside, FORCE_IP true, STOP true)
  -> CheckIPHeader
  -> leaving :: IPClassifier(tcp dst port 21, tcp or udp, icmp type echo, -);
leaving[0] -> FTPPortMapper(nat, nat, 0) -> nat;
leaving[1] -> nat;
leaving[2] -> pings;
leaving[3] -> refused :: Counter -> Discard;

// From outside to inside: what answers.
answers :: FromDump($outside, FORCE_IP true, ACTIVE false, STOP true)
  -> CheckIPHeader
  -> coming :: IPClassifier(tcp or udp, icmp type echo-reply, icmp, -);
coming[0] -> [1] nat;
coming[1] -> [1] pings;
coming[2] -> errors;
coming[3] -> Discard;

to_outside :: ToDump($out, ENCAP IP);
to_inside :: ToDump($in, ENCAP IP);
nat[0] -> to_outside;
pings[0] -> to_outside;
nat[1] -> to_inside;
pings[1] -> to_inside;
errors -> to_inside;
