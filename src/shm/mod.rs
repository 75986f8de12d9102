//! Shared memory among the processes of a node.
//!
//! * Memory: every process has a [`pool`], from which it leases pages for its groups; others map it, and
//!   write there only a [count](layout::Sleepers) of who sleeps ([`backing`], [`mapping`], [`alloc`],
//!   [`budget`], [`allowance`], [`locator`], [`peer`], [`lifelock`]). A [`group`] is made by a handshake, and
//!   its pages are free again when all members have said so ([`mailbox`]). How other processes' private
//!   memory is read and written: [`reading`]; by the system's means ([`cma`]), or by the MPI library's
//!   ([`smsc`]).
//! * Protocol: the members of a group are a [`team`]; a sequence of operations runs on a stream of it, each
//!   operation a [`turn`]. What stands where, and how words count: [`layout`].
//! * Operations: which way the bytes of each go is the matter of one table, [`policy`]; [`op`] has a file
//!   each; [`node`] is how an operation of several nodes gets at them. Blocking ones are run to their end by
//!   [`drive`].
//!
//! [`memory::Memory`] stands between the two halves: real processes provide it, and the [`heap`] of a test.

pub mod alloc;
pub mod allowance;
pub mod backing;
pub mod budget;
pub mod cma;
pub mod config;
pub mod copy;
mod descriptor;
pub mod drive;
pub mod failure;
pub mod group;
pub mod heap;
pub mod layout;
pub mod lifelock;
pub mod locator;
pub mod mailbox;
pub mod mapping;
pub mod memory;
pub mod node;
pub mod op;
pub mod peer;
pub mod policy;
pub mod pool;
pub mod rates;
pub mod reach;
pub mod reading;
pub mod smsc;
pub mod team;
pub mod turn;
