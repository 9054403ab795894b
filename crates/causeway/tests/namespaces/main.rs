//! The binary between hosts in network namespaces: `up`, `doctor`, the example configurations, changes to a running router, and
//! what it says without privileges. Needs root, iproute2, ethtool and ping.

mod changes;
mod churn;
mod classes;
mod click;
mod cluster;
mod control;
mod doctor;
mod driver;
mod driver_missing;
mod examples;
mod faults;
mod flow;
mod frames;
mod hold;
mod lab;
mod lab_alone;
mod lab_interfaces;
mod lab_paper;
mod left_behind;
mod log;
mod net;
#[path = "../netlink/mod.rs"]
mod netlink;
mod new_router;
mod offloads;
mod page;
mod ports;
mod privileges;
mod run_driver;
mod run_driver_changes;
mod run_driver_watched;
mod run_driver_ways;
mod running;
mod service_manager;
mod settings;
mod tcx;
mod throughput;
mod transfer;
mod up;
mod upgrade;
mod upgrade_changes;
mod upgrade_otherwise;
mod watch;
mod watch_driver;
mod wire;
