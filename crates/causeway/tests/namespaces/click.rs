//! The binary under the name `click`, beside the kernel.

use crate::net::{CAUSEWAY, Net, wait_for};
use std::path::PathBuf;
use std::process::{Child, Command};

/// The binary as `click`, in a folder that goes with the value, and the program that was started.
struct Click {
    folder: PathBuf,
    child: Child,
}

impl Click {
    fn start(net: &Net, text: &str) -> Click {
        let folder = std::env::temp_dir().join(net.name("click"));
        std::fs::create_dir_all(&folder).expect("a folder");
        let program = folder.join("click");
        std::os::unix::fs::symlink(CAUSEWAY, &program).expect("a link");
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &net.name("r")]).arg(program).args(["-e", text]);
        let child = command.spawn().expect("click");
        Click { folder, child }
    }
}

impl Drop for Click {
    fn drop(&mut self) {
        // It has ended already unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn the_kernel_keeps_its_packets_and_the_configuration_sees_them() {
    let Some(net) = Net::new() else { return };
    let text = "FromDevice(ra) -> Counter(COUNT_CALL 20 stop) -> Discard; Idle -> Queue -> ToDevice(rb);";
    let mut click = Click::start(&net, text);
    wait_for("click to have seen 20 frames", || {
        let (good, text) = net.ping("-c 3 10.77.1.1");
        assert!(good, "{text}");
        click.child.try_wait().expect("wait").is_some()
    });
    assert!(click.child.wait().expect("wait").success());
}

#[test]
fn several_elements_hand_packets_to_the_host_by_one_interface() {
    let Some(net) = Net::new() else { return };
    let text = "InfiniteSource(LIMIT 3) -> ToHost(host0); \
                InfiniteSource(LIMIT 5, STOP true) -> ToHost(host0); Idle -> ToHost(host0);";
    let mut click = Click::start(&net, text);
    assert!(click.child.wait().expect("wait").success());
}
