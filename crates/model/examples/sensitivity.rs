//! What hangs on the values that nobody says: each assumed value of the papers' machines a quarter less and a quarter more, and the
//! number of the paper that changes most: `cargo run --release -p causeway-model --example sensitivity [OSR CvL LUT AFF FPGA]`.

use causeway_model::figures::sensitivity::{EFFORT, MACHINES, Sensitivity, look};

fn main() -> anyhow::Result<()> {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let is_asked = |paper: &str| asked.is_empty() || asked.iter().any(|one| one.eq_ignore_ascii_case(paper));
    println!("| machine | value | | a quarter less | a quarter more |");
    println!("| --- | --- | --- | --- | --- |");
    for (paper, text) in MACHINES.into_iter().filter(|(paper, _)| is_asked(paper)) {
        look(paper, text, EFFORT, |one| println!("{}", row(paper, one)))?;
    }
    Ok(())
}

fn row(paper: &str, one: &Sensitivity) -> String {
    let told = |(what, by): &(String, f64)| {
        if by.abs() < 0.05 { "nothing".to_owned() } else { format!("{by:+.1} % {what}") }
    };
    let [less, more] = &one.most;
    format!("| {paper} | {} | {} | {} | {} |", one.key, one.value, told(less), told(more))
}
