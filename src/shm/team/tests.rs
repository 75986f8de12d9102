use super::*;
use crate::shm::heap::Heap;

#[test]
fn where_memory_cannot_be_read_nothing_is_to_be_read() {
    for (readable, expected) in [(false, usize::MAX), (true, 5)] {
        let team = Team::new(Heap::new(2, usize::MAX, readable).member(0), Config::default());
        team.set_thresholds(Thresholds::all(5).into());
        assert_eq!(*team.thresholds(false, true), Thresholds::all(expected));
    }
}
