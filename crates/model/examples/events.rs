//! How many events a second the queue hands out, with so many pending: `cargo run --release --example events`.

use causeway_model::event::Queue;
use std::time::Instant;

fn main() {
    for pending in [16u64, 256, 4_096, 65_536] {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut queue = Queue::new();
        for n in 0..pending {
            queue.at(rng.u64(..1_000_000), n);
        }
        let (events, began) = (20_000_000u64, Instant::now());
        for _ in 0..events {
            if let Some(event) = queue.pop() {
                queue.after(rng.u64(..1_000_000), event);
            }
        }
        let rate = events as f64 / began.elapsed().as_secs_f64() / 1e6;
        println!("{pending:>6} pending: {rate:.1} million events a second");
    }
}
