// A VLAN switch: two access ports, each in a VLAN of its own, and a trunk whose frames have tags (IEEE 802.1Q).
//
//   causeway run conf/vlan.click -D dev0=eth1 -D vlan0=000a -D dev1=eth2 -D vlan1=0014 -D trunk=eth3
//
// VLANs are given in four hexadecimal digits: these are 10 and 20. Frames of other VLANs, and those without a tag, that
// come by the trunk are counted and dropped. Each VLAN has a table of its own (`causeway read lan0/table.table`), so an
// address may be in both.

define($dev0 eth1, $vlan0 000a, $dev1 eth2, $vlan1 0014, $trunk eth3, $method PACKET)

// A VLAN. Input and output 0 are the access port's, without tags, input and output 1 the trunk's, with them.
elementclass Lan { $vlan |
    table :: EtherSwitch;
    input [0] -> [0] table [0] -> [0] output;
    input [1] -> VLANDecap -> [1] table [1] -> VLANEncap(VLAN_ID 0x$vlan) -> [1] output;
}

lan0 :: Lan($vlan0);
lan1 :: Lan($vlan1);
out :: Queue(1000) -> ToDevice($trunk);

FromDevice($dev0, PROMISC true, METHOD $method) -> [0] lan0 [0] -> Queue(1000) -> ToDevice($dev0);
FromDevice($dev1, PROMISC true, METHOD $method) -> [0] lan1 [0] -> Queue(1000) -> ToDevice($dev1);

// The last twelve bits of the tag are the VLAN.
FromDevice($trunk, PROMISC true, METHOD $method)
  -> vlan :: Classifier(12/8100 14/$vlan0%0fff, 12/8100 14/$vlan1%0fff, -);
vlan [0] -> [1] lan0 [1] -> out;
vlan [1] -> [1] lan1 [1] -> out;
vlan [2] -> other :: Counter -> Discard;
