//! Which flow the n-th frame of each port belongs to.

use super::{Traffic, random};
use crate::Error;

/// The longest order of frames that is kept: a weight's precision is then better than a hundredth of a percent.
const LONGEST_ORDER: u64 = 65_536;

/// The frames of one stream from one port to another. They are numbered from 0, without gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The port that sends.
    pub from: usize,
    /// The port that is to receive.
    pub to: usize,
    /// Index of the stream in the definition.
    pub stream: usize,
    /// Where its random numbers come from.
    pub seed: u64,
}

/// A definition of traffic, put down for a number of ports.
#[derive(Clone, Debug)]
pub struct Plan {
    flows: Vec<Flow>,
    /// For each port, the flows of its frames in order.
    orders: Vec<Vec<u16>>,
    /// For each port, its part of all frames.
    shares: Vec<f64>,
}

impl Plan {
    /// Puts down `traffic` for `ports` ports.
    ///
    /// # Errors
    /// If the traffic is not possible, or not with so many ports.
    pub fn new(traffic: &Traffic, ports: usize) -> Result<Plan, Error> {
        traffic.check()?;
        let matrix = traffic.matrix.shares(ports)?;
        let total: f64 = matrix.iter().flatten().map(|&share| f64::from(share)).sum();
        let mut plan = Plan { flows: Vec::new(), orders: Vec::new(), shares: Vec::new() };
        for (from, row) in matrix.iter().enumerate() {
            let (mut weights, first) = (Vec::new(), plan.flows.len());
            for (to, &share) in row.iter().enumerate() {
                for (stream, definition) in traffic.streams.iter().enumerate() {
                    let weight = u64::from(share) * u64::from(definition.weight);
                    if weight > 0 {
                        let seed = random::series(traffic.seed, plan.flows.len() as u64);
                        plan.flows.push(Flow { from, to, stream, seed });
                        weights.push(weight);
                    }
                }
            }
            plan.orders.push(order(&weights, first)?);
            plan.shares.push(row.iter().map(|&share| f64::from(share)).sum::<f64>() / total);
        }
        match plan.flows.len() {
            0 => Err(Error::Invalid("all weights are zero".to_owned())),
            n if n > usize::from(u16::MAX) => Err(Error::Invalid(format!("{n} flows are too many"))),
            _ => Ok(plan),
        }
    }

    /// All flows. Their places are their numbers.
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// How many ports there are.
    pub fn ports(&self) -> usize {
        self.orders.len()
    }

    /// The flows of a port's frames in order: the n-th frame is of the place n modulo their number. Empty for a port
    /// that does not send.
    pub fn order(&self, port: usize) -> &[u16] {
        self.orders.get(port).map_or(&[], Vec::as_slice)
    }

    /// The part of all frames that a port sends; those of all ports are 1 together.
    pub fn share(&self, port: usize) -> f64 {
        self.shares.get(port).copied().unwrap_or(0.0)
    }
}

/// Flows `first`, `first + 1` and so on in the ratio of `weights`, each as evenly spread as can be: at each place comes
/// the one that lags most behind its share (smooth weighted round robin).
fn order(weights: &[u64], first: usize) -> Result<Vec<u16>, Error> {
    let common = weights.iter().copied().fold(0, gcd).max(1);
    let weights: Vec<i128> = weights.iter().map(|weight| i128::from(weight / common)).collect();
    let total: i128 = weights.iter().sum();
    if total > i128::from(LONGEST_ORDER) {
        return Err(Error::Invalid(format!(
            "the weights of a port's flows are {total} together, in lowest terms; they may be {LONGEST_ORDER}"
        )));
    }
    let mut lag = vec![0; weights.len()];
    let place = |_| {
        lag.iter_mut().zip(&weights).for_each(|(lag, weight)| *lag += weight);
        // The first of those that lag alike.
        let most = (0..lag.len()).rev().max_by_key(|&i| lag[i]).unwrap_or(0);
        lag[most] -= total;
        (first + most) as u16
    };
    Ok((0..total).map(place).collect())
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
