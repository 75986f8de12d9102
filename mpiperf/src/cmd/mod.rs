//! The subcommands.

/// Runs the program; its exit status.
pub fn main() -> i32 {
    todo!()
}
