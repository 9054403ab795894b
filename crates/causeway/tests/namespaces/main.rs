//! The binary between hosts in network namespaces: `up`, `doctor`, the example configurations, changes to a running router, and
//! what it says without privileges. Needs root, iproute2, ethtool and ping.

mod click;
mod control;
mod doctor;
mod examples;
mod frames;
mod net;
mod privileges;
mod running;
mod up;
