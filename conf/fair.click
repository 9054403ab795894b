// One link, three customers: voice goes first, the other two share what is left packet by packet.
//
//   causeway run conf/fair.click
//
// Pulling makes it work: the link takes a packet when it can send one, and the schedulers decide then which.

define($packets 10000)

voice :: RatedSource(LENGTH 200, RATE 50) -> Queue(20) -> voice_count :: Counter -> [0] first :: PrioSched;

greedy :: InfiniteSource(LENGTH 1500, BURST 8) -> Queue(100) -> greedy_count :: Counter -> [0] turns :: RoundRobinSched;
modest :: InfiniteSource(LENGTH 60) -> Queue(100) -> modest_count :: Counter -> [1] turns;
turns -> [1] first;

first
  -> link :: Unqueue
  -> total :: Counter(COUNT_CALL $packets stop)
  -> Discard;
