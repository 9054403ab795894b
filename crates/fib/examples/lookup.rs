//! A table of routes, asked with addresses of the standard library.
//!
//!     cargo run -p causeway-fib --example lookup 10.1.2.3 192.0.2.1

use std::net::Ipv4Addr;

use causeway_fib::{Fib4, Lookup, MISS, Prefix, Table};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut fib = Fib4::new()?;
    fib.insert("10.0.0.0/8".parse()?, 1)?;
    fib.insert(Prefix::new(Ipv4Addr::new(10, 1, 0, 0).into(), 16)?, 2)?;
    fib.insert(Ipv4Addr::new(10, 1, 2, 3).into(), 3)?;
    for word in std::env::args().skip(1) {
        let address: Ipv4Addr = word.parse()?;
        match fib.lookup(address.into()) {
            MISS => println!("{address}: no route"),
            adjacency => {
                let by = fib.rib().longest(address.into()).map(|(prefix, _)| prefix.to_string());
                println!("{address}: adjacency {adjacency}, by {}", by.unwrap_or_default());
            }
        }
    }
    println!("{:?}", fib.memory());
    Ok(())
}
