// A monitor that exports flows: a line for each TCP and UDP flow of a trace, with its packets, bytes and times.
//
//   causeway run conf/flows.click -D trace=trace.pcap -D out=flows.txt
//
// With an interface put FromDevice($dev) -> Strip(14) -> CheckIPHeader in the place of the file. A flow's line is written when it
// has ended: closed, or silent for its timeout; at the end of the trace those of all others. `count` is the packets.

define($trace trace.pcap, $out flows.txt, $udp_timeout 60);

FromDump($trace, FORCE_IP true, STOP true)
  -> StripToNetworkHeader -> CheckIPHeader
  -> flows :: AggregateIPFlows(UDP_TIMEOUT $udp_timeout, REAP 10, FRAGMENTS false)
  -> seen :: Counter
  -> last :: AggregateLast(NOTIFIER flows, STOP_AFTER_CLEAR true)
  -> ToIPSummaryDump($out, FIELDS aggregate ip_src sport ip_dst dport ip_proto count first_timestamp timestamp);

DriverManager(wait_stop, write flows.clear, write last.clear, wait_stop);

flows[1] -> other :: Counter -> Discard;
