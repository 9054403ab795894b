// Two interfaces as one cable: what comes in by one leaves by the other, unchanged, whatever it is.
//
//   causeway run conf/bridge.click -D dev0=eth1 -D dev1=eth2
//
// PROMISC, because the frames are addressed to the machines at the other end.

define($dev0 eth1, $dev1 eth2)

FromDevice($dev0, PROMISC true) -> there :: Counter -> Queue(1000) -> ToDevice($dev1);
FromDevice($dev1, PROMISC true) -> back :: Counter -> Queue(1000) -> ToDevice($dev0);
