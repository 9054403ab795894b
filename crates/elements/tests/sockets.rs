//! Elements over sockets of the kernel's, with the kernel at the other end.

use causeway_engine::{Options, Plan, Router};
use causeway_lang::NoLibraries;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::time::{Duration, Instant};

fn plan(text: &str) -> Plan {
    let library = causeway_elements::library();
    let compiled = causeway_lang::compile("test", text.as_bytes(), &NoLibraries, &library, &[]);
    Plan::new(&compiled.unwrap_or_else(|f| panic!("{:?}", f.diagnostics.messages())))
}

fn try_start(text: &str) -> Result<Router, String> {
    let router = Router::start(causeway_elements::library(), plan(text), Options::default());
    router.map_err(|e| e.to_string()).inspect(|router| router.resume())
}

fn start(text: &str) -> Router {
    try_start(text).unwrap_or_else(|e| panic!("{e}"))
}

/// A port that nobody has.
fn free_port() -> u16 {
    let (tcp, udp) = (TcpListener::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    drop(udp);
    tcp.local_addr().unwrap().port()
}

fn udp() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    socket
}

fn receive(socket: &UdpSocket) -> Vec<u8> {
    let mut bytes = vec![0; 4_000];
    let (n, _) = socket.recv_from(&mut bytes).expect("a datagram");
    bytes.truncate(n);
    bytes
}

fn wait_for(router: &Router, element: &str, handler: &str, wanted: &str) {
    let start = Instant::now();
    loop {
        let now = router.read(element, handler, "").unwrap();
        if now == wanted {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(20), "{element}.{handler} is {now}, not {wanted}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

fn read_exactly(stream: &mut impl Read, n: usize) -> Vec<u8> {
    let mut bytes = vec![0; n];
    stream.read_exact(&mut bytes).expect("so many bytes");
    bytes
}

#[test]
fn a_udp_server_answers_who_spoke_last() {
    let port = free_port();
    let text = format!("s :: Socket(UDP, 127.0.0.1, {port}, SNAPLEN 100) -> c :: Counter -> s;");
    let router = start(&text);
    let (one, two) = (udp(), udp());
    for (socket, bytes) in [(&one, &b"one"[..]), (&two, b"two"), (&one, b"one again")] {
        socket.send_to(bytes, ("127.0.0.1", port)).unwrap();
        assert_eq!(receive(socket), bytes);
    }
    one.send_to(&[7; 300], ("127.0.0.1", port)).unwrap();
    assert_eq!(receive(&one), [7; 100], "SNAPLEN cuts");
    assert_eq!(router.read("c", "count", "").unwrap(), "4");
}

#[test]
fn udp_clients_send_where_they_are_told() {
    let (server, own) = (udp(), free_port());
    let to = server.local_addr().unwrap().port();
    let router = start(&format!(
        "r :: RatedSource(DATA hello, RATE 1000, LIMIT 3, ACTIVE false)
         -> Socket(UDP, 127.0.0.1, {to}, 127.0.0.1, {own}) -> back :: Counter -> Discard;
         a :: RatedSource(DATA noted, RATE 1000, LIMIT 1, ACTIVE false) -> SetIPAddress(127.0.0.1)
         -> Queue -> Socket(UDP, 0.0.0.0, {to}, CLIENT true);"
    ));
    router.write("r", "active", "true").unwrap();
    let mut bytes = [0; 100];
    let (n, from) = server.recv_from(&mut bytes).unwrap();
    assert_eq!((&bytes[..n], from.port()), (&b"hello"[..], own));
    server.send_to(b"back", from).unwrap();
    wait_for(&router, "back", "count", "1");
    assert_eq!((receive(&server), receive(&server)), (b"hello".to_vec(), b"hello".to_vec()));
    router.write("a", "active", "true").unwrap();
    assert_eq!(receive(&server), b"noted", "as the annotation says");
}

#[test]
fn a_tcp_server_serves_one_after_the_other_and_goes_on_after_a_swap() {
    let port = free_port();
    let text = format!("s :: Socket(TCP, 127.0.0.1, {port}) -> c :: Counter -> s;");
    let mut router = start(&text);
    let mut first = connect(port);
    first.write_all(b"first").unwrap();
    assert_eq!(read_exactly(&mut first, 5), b"first");
    let mut second = connect(port);
    second.write_all(b"second").unwrap();
    router.swap(plan(&text)).unwrap_or_else(|e| panic!("{e}"));
    first.write_all(b"still").unwrap();
    assert_eq!(read_exactly(&mut first, 5), b"still", "the connection outlives a swap");
    drop(first);
    assert_eq!(read_exactly(&mut second, 6), b"second");
    drop(second);
    let mut third = connect(port);
    third.write_all(b"third").unwrap();
    assert_eq!(read_exactly(&mut third, 5), b"third");
}

#[test]
fn a_tcp_client_sends_all_of_a_stream_that_is_read_slowly() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let router = start(&format!(
        "r :: RatedSource(LENGTH 1400, DATA x, RATE 1000000, LIMIT 4000, ACTIVE false) -> Queue(10000)
         -> s :: Socket(TCP, 127.0.0.1, {port}, SNDBUF 5000); r2 :: RatedSource(ACTIVE false) -> Discard;"
    ));
    let (mut stream, _) = listener.accept().unwrap();
    router.write("r", "active", "true").unwrap();
    // The worker is not held up while the kernel has no room.
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(router.read("r2", "count", "").unwrap(), "0");
    let bytes = read_exactly(&mut stream, 4_000 * 1_400);
    assert!(bytes.iter().all(|&b| b == b'x'));
    let error = try_start(&format!("Idle -> Socket(TCP, 127.0.0.1, {});", free_port())).err().unwrap();
    assert!(error.contains("connect: Connection refused"), "{error}");
}

#[test]
fn what_nobody_takes_is_dropped_with_a_reason() {
    let port = free_port();
    let text = format!(
        "RatedSource(LENGTH 1400, RATE 1000000, LIMIT 2000) -> s :: Socket(TCP, 127.0.0.1, {port}, SNDBUF 5000) -> Discard;"
    );
    let router = start(&text);
    let drops = |reason: &str| -> u64 {
        router
            .counters()
            .filter(|(line, _)| line.element == "s" && line.name == format!("drop.{reason}"))
            .map(|(_, n)| n)
            .sum()
    };
    let start = Instant::now();
    while drops("no-peer") < 2_000 {
        assert!(start.elapsed() < Duration::from_secs(20));
    }
    drop(router);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap().port();
    let router = self::start(&format!(
        "RatedSource(LENGTH 1400, RATE 10000000, LIMIT 20000) -> s :: Socket(TCP, 127.0.0.1, {to}, SNDBUF 5000);"
    ));
    let full = || -> u64 {
        router
            .counters()
            .filter(|(line, _)| line.element == "s" && line.name == "drop.full")
            .map(|(_, n)| n)
            .sum()
    };
    let start = Instant::now();
    while full() == 0 {
        assert!(start.elapsed() < Duration::from_secs(20), "it never gets full");
    }
}

#[test]
fn tables_say_who_is_served() {
    let (port, other) = (free_port(), free_port());
    let router = start(&format!(
        "allow :: RadixIPLookup(127.0.0.1 0); deny :: RadixIPLookup(0.0.0.0/0 0); allow -> deny -> allow;
         t :: Socket(TCP, 127.0.0.1, {port}, ALLOW allow, DENY deny) -> tc :: Counter -> t;
         u :: Socket(UDP, 127.0.0.1, {other}, DENY deny) -> uc :: Counter -> u;"
    ));
    let mut stream = connect(port);
    stream.write_all(b"in").unwrap();
    assert_eq!(read_exactly(&mut stream, 2), b"in");
    drop(stream);
    router.write("allow", "remove", "127.0.0.1/32").unwrap();
    let mut stream = connect(port);
    assert_eq!(stream.read(&mut [0; 9]).unwrap_or(0), 0, "it is closed");
    let socket = udp();
    socket.send_to(b"no", ("127.0.0.1", other)).unwrap();
    let denied = || -> u64 {
        router
            .counters()
            .filter(|(line, _)| line.element == "u" && line.name == "drop.denied")
            .map(|(_, n)| n)
            .sum()
    };
    let start = Instant::now();
    while denied() == 0 {
        assert!(start.elapsed() < Duration::from_secs(20));
    }
    router.write("deny", "flush", "").unwrap();
    socket.send_to(b"yes", ("127.0.0.1", other)).unwrap();
    assert_eq!(receive(&socket), b"yes");
    assert_eq!(router.read("uc", "count", "").unwrap(), "1");
}

#[test]
fn files_are_addresses_as_well() {
    let dir = std::env::temp_dir();
    let path = |name: &str| dir.join(format!("causeway-sockets-{}-{name}", std::process::id()));
    let (stream, datagram, own) = (path("stream"), path("datagram"), path("own"));
    let text = format!(
        "s :: Socket(UNIX, {}) -> s; d :: Socket(UNIX_DGRAM, {}) -> d;",
        stream.display(),
        datagram.display()
    );
    let router = start(&text);
    let mut client = UnixStream::connect(&stream).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    client.write_all(b"stream").unwrap();
    assert_eq!(read_exactly(&mut client, 6), b"stream");
    let socket = UnixDatagram::bind(&own).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    socket.send_to(b"datagram", &datagram).unwrap();
    let mut bytes = [0; 20];
    assert_eq!(socket.recv(&mut bytes).unwrap(), 8);
    assert_eq!(&bytes[..8], b"datagram");
    drop(router);
    assert!(!stream.exists() && !datagram.exists(), "the files go with the sockets");
    std::fs::remove_file(own).unwrap();
}

#[test]
fn bad_arguments_are_named() {
    for (config, why) in [
        ("SCTP, 1.2.3.4, 5", "unknown socket type `SCTP'"),
        ("TCP, 1.2.3.4", "PORT: required argument missing"),
        ("UDP, 1.2.3.4, 70000", "PORT: overflow, range 0-65535"),
        ("UDP, 1.2.3.4, nothing", "PORT: parse error"),
        ("TCP, 127.0.0.1, 5, ALLOW c", "c is not an IPRouteTable"),
        ("TCP, 127.0.0.1, 5, DENY nobody", "DENY: does not name an element"),
        (&format!("UNIX, /{}", "x".repeat(200)), "too long"),
        ("TCP, 1.2.3.4, 80", "bind: Cannot assign requested address"),
    ] {
        let error = try_start(&format!("Socket({config}) -> c :: Counter -> Discard;")).err().unwrap();
        assert!(error.contains(why), "{config}: {error}");
    }
}

#[test]
fn a_server_pulls_nothing_until_somebody_comes() {
    let port = free_port();
    let router = start(&format!(
        "r :: RatedSource(DATA ab, RATE 1000, LIMIT 5) -> q :: Queue -> Socket(TCP, 127.0.0.1, {port}) -> Discard;"
    ));
    wait_for(&router, "r", "count", "5");
    assert_eq!(router.read("q", "length", "").unwrap(), "5");
    assert_eq!(read_exactly(&mut connect(port), 10), b"ababababab");
}
