// Replays a capture file at the pace it was recorded, and prints its IPv4 packets.
//
//   causeway run conf/replay.click -D trace=/tmp/trace.pcap

define($trace /tmp/causeway-trace.pcap)

trace :: FromDump($trace, TIMING true, FORCE_IP true, STOP true)
  -> IPPrint(LENGTH true)
  -> average :: AverageCounter
  -> Discard;

trace [1] -> other :: Counter -> Discard;
