//! What runs on the processor.

pub mod linux;
