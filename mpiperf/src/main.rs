//! The command line of `mpiperf`.

fn main() {
    std::process::exit(mpiperf::cmd::main());
}
