//! Round trips of ICMP echo requests: what ping(8) tells of them.

/// Requests that can be told apart by their numbers.
const NUMBERS: usize = 1 << 16;
/// In a time of sending: a reply has come.
const ANSWERED: u64 = 1 << 63;

/// Requests and their replies.
pub(super) struct RoundTrips {
    /// When each number was sent last, in nanoseconds; 0 = never.
    sent_ns: Box<[u64]>,
    received: u64,
    duplicate: u64,
    min_us: u64,
    max_us: u64,
    sum_us: u64,
    square_sum_us: u64,
}

/// What is known of a reply.
pub(super) struct Reply {
    /// 0 if the reply has no timestamp.
    pub round_trip_us: u64,
}

impl Default for RoundTrips {
    fn default() -> Self {
        RoundTrips {
            sent_ns: vec![0; NUMBERS].into_boxed_slice(),
            received: 0,
            duplicate: 0,
            min_us: 0,
            max_us: 0,
            sum_us: 0,
            square_sum_us: 0,
        }
    }
}

impl RoundTrips {
    /// Request `number` is sent.
    pub fn sent(&mut self, number: u16, now_ns: u64) {
        self.sent_ns[usize::from(number)] = now_ns & !ANSWERED;
    }

    /// A reply to `number` came at `when_ns`; `None` if that was never sent.
    pub fn received(&mut self, number: u16, when_ns: u64) -> Option<Reply> {
        let sent_ns = &mut self.sent_ns[usize::from(number)];
        if *sent_ns == 0 {
            return None;
        }
        self.duplicate += u64::from(*sent_ns & ANSWERED != 0);
        *sent_ns |= ANSWERED;
        let mut round_trip_us = 0;
        if when_ns > 0 {
            round_trip_us = when_ns.saturating_sub(*sent_ns & !ANSWERED) / 1_000;
            let first = self.received == 0;
            self.min_us = if first { round_trip_us } else { self.min_us.min(round_trip_us) };
            self.max_us = self.max_us.max(round_trip_us);
            self.sum_us = self.sum_us.saturating_add(round_trip_us);
            self.square_sum_us = self.square_sum_us.saturating_add(round_trip_us.saturating_pow(2));
        }
        self.received += 1;
        Some(Reply { round_trip_us })
    }

    fn mean_us(&self) -> u64 {
        self.sum_us / self.received.max(1)
    }

    /// As ping(8) ends, of so many requests.
    pub fn summary(&self, count: u64) -> String {
        let mut text = format!("{count} packets transmitted, {} received", self.received - self.duplicate);
        if self.duplicate > 0 {
            text += &format!(", +{} duplicates", self.duplicate);
        }
        if count > 0 {
            let lost = count as i64 - self.received as i64 - self.duplicate as i64;
            text += &format!(", {}% packet loss\n", lost * 100 / count as i64);
        }
        if self.received > 0 {
            let mean_us = self.mean_us();
            let variance =
                (self.square_sum_us / self.received.max(1)).saturating_sub(mean_us.saturating_pow(2));
            let [min, mean, max, deviation] = [self.min_us, mean_us, self.max_us, variance.isqrt()]
                .map(|us| format!("{}.{:03}", us / 1_000, us % 1_000));
            text += &format!("rtt min/avg/max/mdev = {min}/{mean}/{max}/{deviation}\n");
        }
        text
    }

    /// What the handler `rtt_min`, `rtt_avg` or `rtt_max` shows.
    pub fn microseconds(&self, handler: &str) -> String {
        let us = match handler {
            "rtt_min" => self.min_us,
            "rtt_max" => self.max_us,
            _ => self.mean_us(),
        };
        match us {
            1..1_000 => format!("{us}us"),
            _ => {
                let seconds = format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
                format!("{}s", seconds.trim_end_matches('0').trim_end_matches('.'))
            }
        }
    }
}
