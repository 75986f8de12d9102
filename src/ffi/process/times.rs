// SPDX-License-Identifier: BSD-3-Clause
//! What this process knows of the node's times: whether to copy through shared memory or to read others'
//! memory.

use crate::endpoint::Result;
use crate::ffi::base::messages;
use crate::params::{Shm, Times};
use crate::shm::config::Cores;
use crate::shm::group::reading::{WAYS, Way};
use crate::shm::protocol::team::Team;
use crate::shm::rates::{self, RATES_BYTES, Rates, Terms};
use crate::shm::thresholds::{self, Thresholds};
use std::sync::OnceLock;

/// For each way of zero copy, where slots do not [rotate](crate::shm::config::Config::rotates), and where
/// they do.
const KINDS: usize = 2 * WAYS;

/// Bytes of what a process knows.
pub const TIMES_BYTES: usize = KINDS * RATES_BYTES;

/// What the first team of the process of each kind has measured, where the parameter says so.
static MEASURED: [OnceLock<Rates>; KINDS] = [const { OnceLock::new() }; KINDS];

/// The number of a kind.
fn kind(way: Way, rotates: bool) -> Option<usize> {
    way.number().map(|number| 2 * number + usize::from(rotates))
}

/// What this process knows, for others.
pub fn known(shm: &Shm) -> [u8; TIMES_BYTES] {
    let mut bytes = [0; TIMES_BYTES];
    for way in [Way::Cma, Way::Smsc] {
        for rotates in [false, true] {
            let Some(number) = kind(way, rotates) else { continue };
            let rates = match shm.times {
                Times::Usual => rates::usual(way, rotates),
                Times::Measured => MEASURED[number].get().copied(),
                Times::Given(times) => Some(Rates::from(times)),
            };
            bytes[number * RATES_BYTES..][..RATES_BYTES].copy_from_slice(&rates.unwrap_or_default().encode());
        }
    }
    bytes
}

/// What a process knows of a kind of teams.
pub fn of(way: Way, rotates: bool, known: &[u8; TIMES_BYTES]) -> Option<Rates> {
    Rates::decode(known[kind(way, rotates)? * RATES_BYTES..].first_chunk()?)
}

/// Tells the team from how many bytes on to read: what the parameter says, or what follows from the times of
/// its `way` that its first member [knows](known), so that all find the same. The number of its kind, if it
/// is to be measured yet; the same for all members.
pub fn begin(team: &Team, shm: &Shm, cores: Cores, (way, times): (Way, Option<Rates>)) -> Option<usize> {
    if let Some(bytes) = shm.zero_copy_min {
        team.set_thresholds(Thresholds::all(bytes).into());
        return None;
    }
    let number = kind(way, team.config().rotates)?;
    let known = times.filter(|_| cores == Cores::Own);
    let otherwise = match cores {
        Cores::Own => Thresholds::UNKNOWN.into(),
        Cores::Lent => Thresholds::LENT.into(),
        Cores::Shared => Thresholds::crowded(team.size(), thresholds::queues_win(way, cores, team.size())).into(),
    };
    team.set_thresholds(known.map_or(otherwise, |rates| rates.thresholds(terms(team, way))));
    let measures = shm.times == Times::Measured && cores == Cores::Own;
    if let Some(rates) = known.filter(|_| measures) {
        let _ = MEASURED[number].set(rates);
    }
    (measures && known.is_none()).then_some(number)
}

/// What a team's thresholds depend on.
fn terms(team: &Team, way: Way) -> Terms {
    Terms { members: team.size(), way, stores: team.memory().stores(), rotates: team.config().rotates }
}

/// Measures the kind of this number, and remembers it.
pub async fn measure(team: &Team, number: usize) -> Result<()> {
    let way = if kind(Way::Smsc, team.config().rotates) == Some(number) { Way::Smsc } else { Way::Cma };
    match rates::measure(team).await? {
        Some(rates) => {
            let _ = MEASURED[number].set(rates);
            if team.me() == 0 {
                messages::remark(&format!("shared memory: measured coll_rust_shm_times = {rates}"));
            }
            team.learn(rates.thresholds(terms(team, way)));
        }
        None => team.learn(Thresholds::UNKNOWN.into()),
    }
    Ok(())
}
