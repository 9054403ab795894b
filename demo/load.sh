# Sourced by demo/run: the flood, and the rates that are seen while it lasts.

# What is asked of the generator, the same for both: more than either forwards, and bounded in rate as in time.
FLOOD_RATE_PPS=5000000

# A UDP packet to port 9 in an Ethernet frame of 60 octets (IPv4) or 62 (IPv6), in hexadecimal; the UDP checksum of
# IPv6 is wrong, since nobody reads it: flood_packet6 DESTINATION-MAC SOURCE-MAC DESTINATION
flood_packet6() {
    local payload=0000 groups
    groups=$(awk -v a="$3" 'BEGIN { n = split(a, side, "::"); left = split(side[1], l, ":"); right = n > 1 ? split(side[2], r, ":") : 0
        for (i = 1; i <= left; i++) printf "%4s", l[i]; for (i = left + right; i < 8; i++) printf "0000"
        for (i = 1; i <= right; i++) printf "%4s", r[i] }' | tr ' ' 0)
    printf '%s%s86dd6000000000081140%s%sd90300090008ffff' \
        "${1//:/}" "${2//:/}" 20010002000000990000000000000001 "$groups"
}

# The generator's graph: flood_graph 4|6 INTERFACE ITS-MAC ROUTERS-MAC DESTINATION
flood_graph() {
    local limit=$((FLOOD_RATE_PPS * SECONDS_A_LOAD))
    if [ "$1" = 4 ]; then
        echo "FastUDPSource($FLOOD_RATE_PPS, $limit, 60, $3, 198.18.99.1, 55555, $4, $5, 9) -> out :: ToDevice($2, METHOD TRANSIT);"
    else
        echo "RatedSource(DATA \\<$(flood_packet6 "$4" "$3" "$5")>, RATE $FLOOD_RATE_PPS, LIMIT $limit) -> out :: ToDevice($2, METHOD TRANSIT);"
    fi
}

# Names of the running router's elements of a class: elements_of CLASS
elements_of() {
    local name
    "$CAUSEWAY" read --socket "$SOCKET" list | tail -n +2 | while read -r name; do
        [ "$("$CAUSEWAY" read --socket "$SOCKET" "$name.class")" != "$1" ] || echo "$name"
    done
}

# Packets that the router has received, sent, dropped, and lost before it could receive them, so far.
router_totals() {
    local port missed=0
    for port in $ROUTER_INPUTS; do
        missed=$((missed + $("$CAUSEWAY" read --socket "$SOCKET" "$port.kernel_drops")))
    done
    "$CAUSEWAY" read --socket "$SOCKET" counters | awk -F '\t' -v missed="$missed" -v inputs="$ROUTER_INPUTS" -v outputs="$ROUTER_OUTPUTS" '
        BEGIN { n = split(inputs, a, " "); for (i = 1; i <= n; i++) is_in[a[i]] = 1
                n = split(outputs, a, " "); for (i = 1; i <= n; i++) is_out[a[i]] = 1 }
        $3 == "count" && is_in[$2] { received += $4 }
        $3 == "count" && is_out[$2] { sent += $4 }
        $3 ~ /^drop\./ { dropped += $4 }
        END { print received + 0, sent + 0, dropped + 0, missed }'
}

# Prints what goes through, a line a second, until it is killed.
watch_router() {
    local now before
    read -r -a before <<<"$(router_totals)"
    while sleep 1; do
        read -r -a now <<<"$(router_totals)" || return 0
        printf '          router: in %8d/s  out %8d/s  dropped %d/s  missed %d/s\n' $((now[0] - before[0])) \
            $((now[1] - before[1])) $((now[2] - before[2])) $((now[3] - before[3]))
        before=("${now[@]}")
    done
}

# Floods one way for the time of a load; appends to `offered` and `rates` what was sent and what arrived a second:
# flood 4|6 FROM-NAMESPACE ITS-INTERFACE ROUTERS-INTERFACE TO-NAMESPACE ITS-INTERFACE DESTINATION
flood() {
    local graph generator before after begun ended sent
    graph=$(flood_graph "$1" "$3" "$(mac "$2" "$3")" "$(mac "$ROUTER" "$4")" "$7")
    # On the first processor, and Causeway's worker on the last: left alone they may share one for a while, or not.
    start "$2" "$CAUSEWAY" run --name cw-demo-generator --socket "$GENERATOR_SOCKET" --processors 0 -e "$graph"
    generator=$started
    await_socket "$GENERATOR_SOCKET" "$generator"
    before=$(received "$5" "$6")
    begun=$(date +%s%N)
    sleep "$SECONDS_A_LOAD"
    after=$(received "$5" "$6")
    ended=$(date +%s%N)
    sent=$("$CAUSEWAY" read --socket "$GENERATOR_SOCKET" out.count)
    stop "$generator"
    offered+=($((sent * 1000000000 / (ended - begun))))
    rates+=($(((after - before) * 1000000000 / (ended - begun))))
}

# Floods each way, through what runs now, and sets `offered` and `rates`, what was sent and what arrived a second.
floods() {
    rates=() offered=()
    flood 4 "$LEFT" left0 to-left "$RIGHT" right0 "$FLOOD4_RIGHT"
    flood 4 "$RIGHT" right0 to-right "$LEFT" left0 "$FLOOD4_LEFT"
    flood 6 "$LEFT" left0 to-left "$RIGHT" right0 "$FLOOD6_RIGHT"
    flood 6 "$RIGHT" right0 to-right "$LEFT" left0 "$FLOOD6_LEFT"
}

# Puts the two floods beside each other: `ours` and `ours_offered`, `rates` and `offered`.
flood_table() {
    local what=("IPv4, left to right" "IPv4, right to left" "IPv6, left to right" "IPv6, right to left") i status=0
    printf '\n%-20s %23s %23s %9s\n' "" "Causeway at XDP" "kernel" "Causeway"
    printf '%-20s %11s %11s %11s %11s %9s\n' "packets a second" sent arrived sent arrived "to kernel"
    for i in 0 1 2 3; do
        printf '%-20s %11d %11d %11d %11d %9s\n' "${what[i]}" "${ours_offered[i]}" "${ours[i]}" \
            "${offered[i]}" "${rates[i]}" \
            "$(awk -v a="${ours[i]}" -v b="${rates[i]}" 'BEGIN { if (b) printf "%.2f", a / b; else print "-" }')"
        [ "${ours[i]}" -gt 1000 ] || status=1
    done
    echo "Asked of the generator were $FLOOD_RATE_PPS a second for both. Sent is what it got rid of: the kernel forwards on the"
    echo "generator's processor and slows it down, Causeway's worker is on another. Arrived is what the other host received."
    echo "All share this machine's $(nproc) processors, with whatever else runs on it."
    case "$CAUSEWAY" in
        */debug/*) echo "This is a slow binary, of the dev profile; make demo without PROFILE builds the fast one." ;;
    esac
    verdict "$status" "the flood arrives" "at least 1000 packets a second each way"
}
