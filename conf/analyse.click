// A trace analyser: what a part of a trace holds, made anonymous and written down in text.
//
//   causeway run conf/analyse.click -D trace=trace.pcap -D out=trace.txt
//
// The text has a line for each packet, which FromIPSummaryDump reads again. The handlers tell the rest: packets by
// length (`lengths.write_text_file -`), by destination network (`networks.write_ip_file -`), and the time they span (`span.range`).

define($trace trace.pcap, $out trace.txt, $after 0, $interval 1h);

FromDump($trace, FORCE_IP true, STOP true)
  -> StripToNetworkHeader -> CheckIPHeader
  -> TimeFilter(START_AFTER $after, INTERVAL $interval)
  -> span :: TimeRange
  -> AggregateLength(IP true) -> lengths :: AggregateCounter
  -> AnonymizeIPAddr(CLASS 4)
  -> AggregateIP(ip dst/24, UNSHIFT_IP_ADDR true) -> networks :: AggregateCounter
  -> EraseIPPayload
  -> SetTimestampDelta
  -> ToIPSummaryDump($out, FIELDS timestamp ip_src sport ip_dst dport ip_proto ip_len tcp_flags);
