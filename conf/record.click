// Records a second of traffic to a capture file that tcpdump and Wireshark read, for conf/replay.click.
//
//   causeway run conf/record.click -D trace=/tmp/trace.pcap

define($trace /tmp/causeway-trace.pcap)

FastUDPSource(1000, 1000, 120, 2:0:0:0:0:1, 10.0.0.1, 1234, 2:0:0:0:0:2, 10.0.0.2, 53, INTERVAL 100)
  -> Unqueue
  -> dump :: ToDump($trace)
  -> count :: Counter(COUNT_CALL 1000 stop)
  -> Discard;
