// Puts the fragments of a capture file's IP packets together: reads $trace, writes $out with whole packets. Packets that
// never become whole are written to $rest as far as they came.
//
//   causeway run conf/defragment.click -D trace=in.pcap -D out=whole.pcap -D rest=rest.pcap

define($trace in.pcap, $out whole.pcap, $rest rest.pcap)

FromDump($trace, FORCE_IP true, STOP true)
  -> StripToNetworkHeader -> CheckIPHeader(VERBOSE false)
  -> join :: IPReassembler
  -> ToDump($out, ENCAP IP);
join [1] -> ToDump($rest, ENCAP IP);
