//! probe
use causeway_model::{figures::*, run::Effort};
fn main() {
    let short = std::env::args().any(|a| a == "short");
    for f in Figure::all() {
        if let Some(only) = std::env::args().nth(1).filter(|a| a != "short") {
            if f.name != only {
                continue;
            }
        }
        let t = std::time::Instant::now();
        let m = f.machine().unwrap();
        let found = f.run(&m, 1, if short { Effort::SHORT } else { Effort::FULL }, Some(20000)).unwrap();
        for l in lines(f, &found) {
            println!("{l}");
        }
        if std::env::args().any(|a| a == "why") {
            for l in why(&found) {
                println!("{l}");
            }
            for l in ways(&found) {
                println!("{l}");
            }
        }
        for (c, o) in &found.curves {
            for (fl, n) in &c.flows {
                println!("{n}: {:?}", o.iter().map(|o| (o.flows_fps[*fl] / 1e3) as u64).collect::<Vec<_>>());
            }
            println!("{}: {:?}", c.name, o.iter().map(|o| (o.rate_fps() / 1e3) as u64).collect::<Vec<_>>());
        }
        let ev: u64 = found.curves.iter().flat_map(|(_, o)| o).map(|o| o.events).sum();
        println!(
            "  {:.1} s, {:.1} Mev/s",
            t.elapsed().as_secs_f64(),
            ev as f64 / 1e6 / t.elapsed().as_secs_f64()
        );
    }
}
