//! Numbers with so many binary digits behind the point, as Click's probabilities are.

use crate::rate::decimal;
use causeway_engine::value::Value;
use causeway_engine::{Cx, Error, Scope};

/// A number from 0 to 1 as parts of 2^BITS. What was read may be more than 1 ([`Probability::check`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Probability<const BITS: u32>(pub u32);

impl<const BITS: u32> Probability<BITS> {
    /// One.
    pub const ONE: Self = Probability(1 << BITS);

    /// Whether it is at most 1.
    pub fn check(self, name: &str) -> Result<(), Error> {
        if self.0 > Self::ONE.0 { Err(Error::new(format!("{name} must be between 0 and 1"))) } else { Ok(()) }
    }

    /// One less this.
    pub fn inverse(self) -> Self {
        Probability(Self::ONE.0.saturating_sub(self.0))
    }

    /// Whether it happens this time, that is how often it should.
    pub fn happens(self, cx: &mut Cx<'_>) -> bool {
        cx.rng().u32(..Self::ONE.0) < self.0
    }
}

impl<const BITS: u32> Value for Probability<BITS> {
    fn parse(text: &str, scope: &Scope<'_>) -> Result<Self, Error> {
        let number = f64::parse(text, scope).ok().filter(|number| *number >= 0.0);
        let number = number.ok_or_else(|| Error::new("parse error"))?;
        Ok(Probability((number * f64::from(Self::ONE.0)).round() as u32))
    }

    fn placeholder() -> Self {
        Probability(0)
    }
}

impl<const BITS: u32> std::fmt::Display for Probability<BITS> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&decimal(self.0.into(), BITS))
    }
}
