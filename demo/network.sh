# Sourced by demo/run: the three network namespaces, and their end.
#
#   cw-demo-left           cw-demo-router                cw-demo-right
#   left0 ────────────── to-left    to-right ────────────── right0
#   10.77.1.2            10.77.1.1  10.77.2.1             10.77.2.2
#   fd77:1::2            fd77:1::1  fd77:2::1             fd77:2::2
#   MTU 1500             MTU 1500   MTU 1400              MTU 1400

PREFIX=cw-demo
LEFT=$PREFIX-left ROUTER=$PREFIX-router RIGHT=$PREFIX-right
LOCK=/run/$PREFIX.lock
NARROW_MTU=1400
# Destinations of the flood: the blocks for benchmarks (RFC 2544 appendix C.2.2, RFC 5180 §8). A host that is sent
# them and forwards nothing drops them without an answer.
FLOOD4_LEFT=198.18.1.1 FLOOD4_RIGHT=198.18.2.1
FLOOD6_LEFT=2001:2:0:1::1 FLOOD6_RIGHT=2001:2:0:2::1

# in_ns NAMESPACE COMMAND...
in_ns() {
    local ns=$1
    shift
    ip netns exec "$ns" "$@"
}

# Removes everything that a demo made, here or in an earlier run: the processes in its namespaces, then these.
remove_network() {
    local ns pids
    for ns in "$LEFT" "$ROUTER" "$RIGHT"; do
        [ -e "/run/netns/$ns" ] || continue
        pids=$(ip netns pids "$ns" 2>/dev/null || true)
        # shellcheck disable=SC2086 # A list of numbers.
        [ -z "$pids" ] || kill -KILL $pids 2>/dev/null || true
        ip netns del "$ns" || true
    done
    # The records of its routers: who is killed leaves them, and there is nothing left to be undone.
    rm -f "/run/causeway/$PREFIX".* "/run/causeway/$PREFIX-generator".* "/run/causeway/up/$PREFIX".*
}

# setting NAMESPACE PATH VALUE, below /proc/sys/net
setting() {
    in_ns "$1" sh -c "echo $3 > /proc/sys/net/$2"
}

# A namespace; forward is 1 in the router.
make_namespace() {
    local ns=$1 forward=$2 where
    ip netns add "$ns"
    ip -n "$ns" link set lo up
    for where in all default; do
        # Addresses are usable at once, and the demo's answers may leave by another way than they came.
        setting "$ns" "ipv6/conf/$where/accept_dad" 0
        setting "$ns" "ipv4/conf/$where/rp_filter" 0
        setting "$ns" "ipv6/conf/$where/forwarding" "$forward"
    done
    setting "$ns" ipv4/ip_forward "$forward"
}

# make_link HOST ITS-INTERFACE ROUTERS-INTERFACE NUMBER MTU
make_link() {
    local ns=$1 host_if=$2 router_if=$3 n=$4 mtu=$5
    ip link add "$host_if" netns "$ns" mtu "$mtu" type veth peer name "$router_if" netns "$ROUTER" mtu "$mtu"
    ip -n "$ns" addr add "10.77.$n.2/24" dev "$host_if"
    ip -n "$ns" addr add "fd77:$n::2/64" dev "$host_if" nodad
    ip -n "$ROUTER" addr add "10.77.$n.1/24" dev "$router_if"
    ip -n "$ROUTER" addr add "fd77:$n::1/64" dev "$router_if" nodad
    ip -n "$ROUTER" link set "$router_if" up
    ip -n "$ns" link set "$host_if" up
    ip -n "$ns" route add default via "10.77.$n.1"
    ip -n "$ns" -6 route add default via "fd77:$n::1"
}

make_network() {
    make_namespace "$LEFT" 0
    make_namespace "$RIGHT" 0
    make_namespace "$ROUTER" 1
    make_link "$LEFT" left0 to-left 1 1500
    make_link "$RIGHT" right0 to-right 2 "$NARROW_MTU"
    ip -n "$ROUTER" route add "$FLOOD4_LEFT/32" via 10.77.1.2
    ip -n "$ROUTER" route add "$FLOOD4_RIGHT/32" via 10.77.2.2
    ip -n "$ROUTER" -6 route add "$FLOOD6_LEFT/128" via fd77:1::2
    ip -n "$ROUTER" -6 route add "$FLOOD6_RIGHT/128" via fd77:2::2
    in_ns "$RIGHT" nft -f - <<<"table inet demo { counter requests { }
        chain in { type filter hook input priority 0; icmp type echo-request counter name requests; }; }"
}

# Makes the links behave as wires between cards: whole packets with their checksums.
behave_as_cards() {
    # The stack leaves checksums to the hardware, of which a veth has none: a router above AF_XDP would see them unmade.
    in_ns "$LEFT" ethtool -K left0 tx off tso off gso off >/dev/null
    in_ns "$RIGHT" ethtool -K right0 tx off tso off gso off >/dev/null
    # A veth takes redirected frames only while its peer polls, as it does with GRO.
    in_ns "$LEFT" ethtool -K left0 gro on >/dev/null
    in_ns "$RIGHT" ethtool -K right0 gro on >/dev/null
    in_ns "$ROUTER" ethtool -K to-left gro on >/dev/null
    in_ns "$ROUTER" ethtool -K to-right gro on >/dev/null
}

# mac NAMESPACE INTERFACE
mac() {
    ip -n "$1" -o link show "$2" | sed 's/.*link\/ether \([0-9a-f:]*\).*/\1/'
}

# Packets that an interface has received so far: received NAMESPACE INTERFACE
received() {
    ip -n "$1" -s -o link show "$2" | sed 's/.*RX:[^\\]*\\ *[0-9]* *\([0-9]*\).*/\1/'
}
