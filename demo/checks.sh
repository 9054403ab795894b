# Sourced by demo/run: checks, and how their outcome is shown.

failed=0

# verdict STATUS WHAT SEEN
verdict() {
    if [ "$1" -eq 0 ]; then
        printf '  ok      %-42s %s\n' "$2" "$3"
    else
        printf '  FAILED  %-42s %s\n' "$2" "$3"
        failed=$((failed + 1))
    fi
}

# check_ping WHAT NAMESPACE ADDRESS
check_ping() {
    local output status=0
    output=$(in_ns "$2" ping -n -c 3 -i 0.2 -W 2 "$3" 2>&1) || status=1
    grep -q ' 3 received' <<<"$output" || status=1
    verdict "$status" "$1" "$(awk '/received/ { sub(", time.*", ""); seen = $0 }
        /^rtt/ { split($4, t, "/"); seen = seen ", " t[2] " ms" } END { print seen }' <<<"$output")"
}

# check_traceroute WHAT NAMESPACE ADDRESS HOP: the router is the first hop, the host the second and last.
check_traceroute() {
    local hops status=0
    hops=$(in_ns "$2" traceroute -n -q 1 -w 2 -m 4 "$3" 2>&1 |
        awk '$1 ~ /^[0-9]+$/ { printf "%s%s", between, $2; between = " " }')
    [ "$hops" = "$4 $3" ] || status=1
    verdict "$status" "$1" "${hops:-no answer}"
}

# check_path_mtu WHAT NAMESPACE ADDRESS SIZE: SIZE is the payload that makes a packet of 1500 octets.
check_path_mtu() {
    local output learnt status=0
    output=$(in_ns "$2" ping -n -M do -c 1 -W 2 -s "$4" "$3" 2>&1 || true)
    output=$(sed -n -E 's/.*mtu ?= ?([0-9]+).*/\1/p' <<<"$output" | head -n 1)
    learnt=$(ip -n "$2" route get "$3" | sed -n 's/.*\(mtu [0-9]*\).*/\1/p' | head -n 1)
    [ "$output" = "$NARROW_MTU" ] && [ "$learnt" = "mtu $NARROW_MTU" ] || status=1
    verdict "$status" "$1" "too big, says the router: MTU ${output:-not told}; the host learnt: ${learnt:-nothing}"
}

# check_fits WHAT NAMESPACE ADDRESS SIZE: a packet of exactly the path's MTU passes.
check_fits() {
    local output status=0
    output=$(in_ns "$2" ping -n -M do -c 1 -W 2 -s "$4" "$3" 2>&1) || status=1
    verdict "$status" "$1" "$(sed -n '/received/s/, time.*//p' <<<"$output")"
}

# check_udp WHAT ADDRESS [iperf3 OPTION]: at least 80 of 100 packets arrive. On a machine that is busy with other things
# hosts and router do not always get a processor before a buffer is full; how many were lost is shown.
check_udp() {
    local output line status=0
    output=$(timeout $((SECONDS_A_LOAD + 15)) ip netns exec "$LEFT" iperf3 --client "$2" --udp --bitrate 10M --length 500 \
        --window 1M --time "$SECONDS_A_LOAD" --format m "${@:3}" 2>&1) || status=1
    line=$(sed -n '/receiver/p' <<<"$output" | tail -n 1)
    # Lost and sent packets are written as 12/3000 (0.4%).
    awk -v line="$line" 'BEGIN { if (!match(line, /[0-9]+\/[0-9]+/)) exit 1
        split(substr(line, RSTART, RLENGTH), n, "/"); exit !(n[2] > 0 && n[1] <= n[2] * 0.2) }' || status=1
    if [ -n "$line" ]; then
        line=$(sed -E 's/.* ([0-9.]+ Mbits\/sec).* ([0-9]+)\/([0-9]+) .*/\3 packets of 500 octets, \1, lost \2/' <<<"$line")
    else
        line=$(tail -n 1 <<<"$output")
    fi
    verdict "$status" "$1" "$line"
}

# check_tcp WHAT ADDRESS [iperf3 OPTION]: at least 10 Mbit/s arrive; a connection whose checksums are wrong has none.
check_tcp() {
    local output line status=0
    output=$(timeout $((SECONDS_A_LOAD + 15)) ip netns exec "$LEFT" iperf3 --client "$2" --time "$SECONDS_A_LOAD" --format m \
        "${@:3}" 2>&1) || status=1
    line=$(sed -n -E 's/.* ([0-9.]+) Mbits\/sec.*receiver.*/\1/p' <<<"$output" | tail -n 1)
    awk -v rate="${line:-0}" 'BEGIN { exit !(rate >= 10) }' || status=1
    [ -n "$line" ] && line="$line Mbit/s arrived" || line=$(tail -n 1 <<<"$output")
    verdict "$status" "$1" "$line"
}

# Echo requests that have reached the host on the right.
requests_seen() {
    in_ns "$RIGHT" nft list counter inet demo requests | sed -n 's/.*packets \([0-9]*\).*/\1/p'
}

# Packets that Causeway has forwarded; none where all ports are the kernel's, and there is no such element.
forwarded() {
    "$CAUSEWAY" read --socket "$SOCKET" forward.count 2>/dev/null || echo 0
}

# The router's log from a line on: router_says LINE
router_says() {
    tail -n "+$1" "$ROUTER_LOG" | sed 's/^/          /'
}

# check_firewall MOST: a rule that drops pings is added while 500 a second pass, and taken away. Of those on the way when
# nft returns, MOST may still arrive. Sets `forwarding` to what Causeway itself forwarded before, under the rule and after.
check_firewall() {
    local flow before during after first status=0 passed counts
    first=$(($(wc -l <"$ROUTER_LOG") + 1))
    start "$LEFT" ping -n -q -W 1 -i 0.002 -c 2250 10.77.2.2
    flow=$started
    sleep 1
    counts=("$(forwarded)")
    in_ns "$ROUTER" nft -f - <<<"table inet demo { chain forward { type filter hook forward priority 0
        ip daddr 10.77.2.2 icmp type echo-request drop; }; }"
    before=$(requests_seen)
    counts+=("$(forwarded)")
    sleep 1
    during=$(requests_seen)
    counts+=("$(forwarded)")
    in_ns "$ROUTER" nft delete table inet demo
    # It is taken as gone when it was looked for.
    sleep 1
    after=$(requests_seen)
    counts+=("$(forwarded)")
    sleep 1
    counts+=("$(forwarded)")
    passed=$((during - before))
    [ "$before" -gt 20 ] && [ "$passed" -le "$1" ] || status=1
    verdict "$status" "a firewall rule, added while pings pass" "$before had arrived, $passed in the second after nft had returned"
    status=0
    passed=$(($(requests_seen) - after))
    [ "$passed" -gt 20 ] || status=1
    verdict "$status" "the rule taken away again" "$passed passed in a second"
    stop "$flow"
    echo "          the router says:"
    router_says "$first"
    forwarding=($((counts[1] - counts[0])) $((counts[2] - counts[1])) $((counts[4] - counts[3])))
}

# What the killed router left behind is undone by the doctor.
check_leftovers() {
    local line status=0
    line=$(in_ns "$ROUTER" "$CAUSEWAY" doctor to-left to-right | sed -n "s/.*\[leftovers\] \(.*'$PREFIX'.*\)/\1/p")
    [ -n "$line" ] || status=1
    verdict "$status" "causeway doctor, after the kill" "${line:-nothing was undone}"
}

# check_kill: the router is killed while pings pass, 1 000 a second each way.
check_kill() {
    local output lost status=0
    output=$(in_ns "$LEFT" ping -n -q -W 1 -i 0.001 -c 2000 10.77.2.2 2>&1 &
        sleep 1
        kill -KILL "$router"
        wait $! || true)
    wait "$router" 2>/dev/null || true
    lost=$(sed -n 's/^\([0-9]*\) packets transmitted, \([0-9]*\) received.*/\1 \2/p' <<<"$output" | awk '{ print $1 - $2 }')
    # The aim is 10 ms; a machine that is busy with other things is given ten times that.
    [ -n "$lost" ] && [ "$lost" -le 100 ] || status=1
    verdict "$status" "kill -9 while pings pass" "${lost:-all} of 2000 lost, sent one a millisecond"
}
