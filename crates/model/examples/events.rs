//! How fast the model is: events a second that the queue hands out, with so many pending, and what a trial of 30 s of a saturated
//! gigabit port takes, with all its buses' transactions: `cargo run --release -p causeway-model --example events`.

use causeway_engine::reception::Mechanism;
use causeway_model::event::{Queue, SECOND};
use causeway_model::link::Link;
use causeway_model::machine::Machine;
use causeway_model::router::{Flow, Router, Scenario};
use causeway_model::software::linux::{Role, Setup, Without};
use std::time::Instant;

/// Frames of 64 bytes that a gigabit carries, a second.
const LINE_FPS: f64 = 1_488_095.0;
const TRIAL_S: u64 = 30;

fn main() -> anyhow::Result<()> {
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
    trial()
}

/// OSR's machine under NAPI, one port at full rate to another.
fn trial() -> anyhow::Result<()> {
    let mechanisms = vec![Mechanism::Napi { quota: 64 }; 2];
    let scenario = Scenario {
        links: vec![Link { rate_bps: 1_000_000_000 }; 2],
        flows: vec![Flow { from: 0, to: vec![1], rate_fps: LINE_FPS }],
        bytes: 64,
        moderated: false,
        kernel: Setup {
            mechanisms,
            budget: 300,
            recycling: false,
            role: Role::Forward,
            without: Without::default(),
        },
    };
    let mut router = Router::new(&Machine::osr()?, &scenario, 1, None)?;
    let began = Instant::now();
    router.run(TRIAL_S * SECOND);
    let took_s = began.elapsed().as_secs_f64();
    println!(
        "{TRIAL_S} s of a saturated gigabit port: {took_s:.1} s; {} frames came in, {} left; {:.1} million events a second",
        router.arrived[0],
        router.left[0],
        router.events() as f64 / took_s / 1e6
    );
    Ok(())
}
