// A learning bridge: an Ethernet switch of three interfaces. It notes who is where, sends frames there, and floods those
// to addresses that it does not know.
//
//   causeway run conf/switch.click -D dev0=eth1 -D dev1=eth2 -D dev2=eth3
//
// `causeway read table.table` shows the addresses. There is no spanning tree: the interfaces must not make a ring.

define($dev0 eth1, $dev1 eth2, $dev2 eth3, $method PACKET, $timeout 300)

table :: EtherSwitch(TIMEOUT $timeout);

// PROMISC, because the frames are addressed to the machines of the other networks.
FromDevice($dev0, PROMISC true, METHOD $method) -> [0] table [0] -> Queue(1000) -> ToDevice($dev0);
FromDevice($dev1, PROMISC true, METHOD $method) -> [1] table [1] -> Queue(1000) -> ToDevice($dev1);
FromDevice($dev2, PROMISC true, METHOD $method) -> [2] table [2] -> Queue(1000) -> ToDevice($dev2);
