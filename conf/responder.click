// A network of hosts that are not there: whatever address of it the host pings, this answers.
//
//   causeway run conf/responder.click -D addr=10.9.0.1/24
//   ping 10.9.0.77
//
// 10.9.0.1 itself is the host's own address, which it answers for.

define($addr 10.9.0.1/24, $dev pings0)

tun :: KernelTun($addr, DEVNAME $dev)
  -> version :: Classifier(0/40%f0, -)
  -> IPReassembler
  -> CheckICMPHeader(VERBOSE false)
  -> ICMPPingResponder
  -> answered :: Counter
  -> tun;

// What the host says by IPv6 is not for these.
version [1] -> Discard;
