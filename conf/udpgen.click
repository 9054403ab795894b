// Makes UDP packets as fast as one worker can, or $rate a second, and counts them.
//
//   causeway run conf/udpgen.click -D limit=10000000
//
// The packet is built once and copied; a frame is recycled as soon as it is discarded.

define($rate 0, $limit 1000000, $length 60)

source :: FastUDPSource($rate, $limit, $length, 2:0:0:0:0:1, 10.0.0.1, 1234, 2:0:0:0:0:2, 10.0.0.2, 1234)
  -> Unqueue(BURST 32)
  -> average :: AverageCounter
  -> Counter(COUNT_CALL $limit stop)
  -> Discard;
