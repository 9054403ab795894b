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
        --time "$SECONDS_A_LOAD" --format m "${@:3}" 2>&1) || status=1
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
