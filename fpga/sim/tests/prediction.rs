//! The simulated card against the protocol model: deliveries, bursts, packets a burst and bus use.

use causeway_model::enhanced::predict;
use causeway_nic_sim::report::experiments::{mesh, routing, two_to_one, unequal};
use causeway_nic_sim::scenario::{ResponsePolicy, Scenario, run};

/// Part by which simulation and model may differ.
const TOLERANCE: f64 = 0.05;

#[test]
fn simulation_and_protocol_model_agree() {
    let mut scenarios: Vec<Scenario> = routing().into_iter().filter(|s| s.fast_path).collect();
    scenarios.push(Scenario::new("mesh-4", 4, mesh(4, 64)));
    agree(scenarios);
}

#[test]
fn they_agree_for_every_rule_of_the_response_scheduler() {
    agree(
        ResponsePolicy::ALL
            .map(|policy| {
                let mut near_saturation = two_to_one(&format!("D-{}", policy.name()), 1.0, 64, 0.45);
                near_saturation.policy = policy;
                [near_saturation, unequal(&format!("unequal-{}", policy.name()), policy)]
            })
            .concat(),
    );
}

fn agree(scenarios: Vec<Scenario>) {
    let mut wrong = Vec::new();
    for scenario in scenarios {
        let scenario = scenario.lasting(600, 700);
        let outcome = run(&scenario).unwrap();
        assert!(outcome.errors.is_empty(), "{}: {:?}", scenario.name, outcome.errors);
        let model = predict(&scenario.protocol());
        let seen = outcome.statistics();
        for (what, seen, model) in [
            ("packets/s", seen.delivered_pps, model.delivered_pps),
            ("high/s", seen.high_pps, model.high_pps),
            ("bursts/s", seen.bursts_pps, model.bursts_pps),
            ("bus busy", seen.bus_busy, model.bus_busy),
            ("bus data", seen.bus_data, model.bus_data),
        ] {
            println!(
                "{:22} {what:10} {seen:14.4} {model:14.4} {:+.2} %",
                scenario.name,
                100.0 * (model / seen - 1.0)
            );
            // Of a class that is not there, both have none.
            if model != seen && (model / seen - 1.0).abs() > TOLERANCE {
                wrong.push(format!("{}: {what} {seen} simulated, {model} in the model", scenario.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
