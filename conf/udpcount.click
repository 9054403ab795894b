// Counts the UDP packets to one port that come in by an interface, and their rate. udpsend.click can be the sender.
//
//   causeway run conf/udpcount.click -D dev=eth1 &
//   causeway read good.rate
//
// METHOD PACKET leaves the frames to the kernel as well, so that it goes on answering ARP for the interface.

define($dev eth1, $port 1234)

FromDevice($dev, METHOD PACKET)
  -> ip :: Classifier(12/0800, -)
  -> check :: CheckIPHeader(14, CHECKSUM false)
  -> udp :: IPClassifier(udp dst port $port, -)
  -> good :: AverageCounter
  -> Discard;

ip [1] -> other :: Counter -> Discard;
check [1] -> bad :: Counter -> Discard;
udp [1] -> other;
