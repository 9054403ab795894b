//! What the lookup paper (Bolla and Bruschi) compares: two trees, a route cache, and policy routing.

pub mod cache;
pub mod lctrie;
pub mod policy;
pub mod radix;
