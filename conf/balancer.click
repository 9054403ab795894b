// A load balancer: connections to one address go to servers in turn, and their packets stay with the server.
//
//   causeway run conf/balancer.click -D trace=trace.pcap -D out=out.pcap
//
// $trace holds IP packets to $service (ENCAP IP); $out is written with them as they go to the servers. To let the client's
// address choose the server, name `by_source` in the place of `in_turn`.

define($trace trace.pcap, $out out.pcap, $service 1.0.0.1, $port 80,
       $server0 10.0.0.2, $server1 10.0.0.3, $server2 10.0.0.4);

in_turn :: RoundRobinIPMapper(- - $server0 $port 0 1, - - $server1 $port 0 1, - - $server2 $port 0 1);
by_source :: SourceIPHashMapper(20 7, - - $server0 $port 0 1 0, - - $server1 $port 0 1 1, - - $server2 $port 0 1 2);

FromDump($trace, FORCE_IP true, STOP true)
  -> StripToNetworkHeader -> CheckIPHeader
  -> kind :: IPClassifier(dst host $service and dst tcp port $port, src tcp port $port, -);

balancer :: IPRewriter(in_turn, drop);
kind[0] -> balancer;            // from clients
kind[1] -> [1] balancer;        // from servers
kind[2] -> other :: Counter -> Discard;

out :: ToDump($out, ENCAP IP);
balancer[0] -> out;
balancer[1] -> out;
