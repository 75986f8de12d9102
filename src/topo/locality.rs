// SPDX-License-Identifier: BSD-3-Clause
//! Which modules of its node a process is bound to, as PMIx words it.

use super::level::Level;

/// The numbers of the modules that a process is bound to. `None`: to several, to none, or not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Locality {
    /// Its level-2 cache.
    pub l2: Option<u32>,
    /// Its level-3 cache.
    pub l3: Option<u32>,
    /// Its NUMA node.
    pub numa: Option<u32>,
    /// Its processor package.
    pub socket: Option<u32>,
}

/// What a locality string says of one level.
#[derive(Clone, Copy, PartialEq)]
enum Said {
    Nothing,
    One(u32),
    Several,
}

impl Locality {
    /// Reads a locality string such as `SK0:L30:L20-1:L10-1:CR0-1:HT0-1:NM0`: parts of a two-letter key and a
    /// list of numbers (`L212` is the key `L2` and number 12).
    ///
    /// Who is bound to several modules of a level has no number there nor at any level below it. A key that
    /// is absent (a machine without L3 cache) takes nothing from the levels below; a value that cannot be
    /// read counts as several.
    pub fn parse(text: &str) -> Locality {
        let mut said = [Said::Nothing; 4];
        for part in text.split(':') {
            let (Some(key), Some(value)) = (part.get(..2), part.get(2..)) else { continue };
            let level = match key {
                "SK" => Level::Socket,
                "NM" => Level::Numa,
                "L3" => Level::L3,
                "L2" => Level::L2,
                _ => continue,
            };
            let slot = &mut said[level.index() as usize];
            *slot = if *slot == Said::Nothing { list(value) } else { Said::Several };
        }
        let mut known = [None; 4];
        for (known, said) in known.iter_mut().zip(said).rev() {
            match said {
                Said::One(number) => *known = Some(number),
                Said::Nothing => {}
                Said::Several => break,
            }
        }
        let [l2, l3, numa, socket] = known;
        Locality { l2, l3, numa, socket }
    }

    /// The physical core that a locality string names. `None`: several, none, or it is not known.
    pub fn core(text: &str) -> Option<u32> {
        let mut cores = text.split(':').filter_map(|part| part.strip_prefix("CR")).map(list);
        match (cores.next(), cores.next()) {
            (Some(Said::One(core)), None) => Some(core),
            _ => None,
        }
    }

    /// The number at a level inside the node; `None` for other levels.
    pub fn at(&self, level: Level) -> Option<u32> {
        match level {
            Level::L2 => self.l2,
            Level::L3 => self.l3,
            Level::Numa => self.numa,
            Level::Socket => self.socket,
            _ => None,
        }
    }
}

/// Whether an hwloc list (`3`, `0-1,4`, `2-`) names exactly one number.
fn list(text: &str) -> Said {
    let mut only = None;
    for item in text.split(',') {
        let (first, last) = item.split_once('-').unwrap_or((item, item));
        match (number(first), number(last)) {
            (Some(a), Some(b)) if a == b && only.is_none_or(|n| n == a) => only = Some(a),
            _ => return Said::Several,
        }
    }
    only.map_or(Said::Several, Said::One)
}

fn number(text: &str) -> Option<u32> {
    if text.bytes().all(|b| b.is_ascii_digit()) { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn known(l2: Option<u32>, l3: Option<u32>, numa: Option<u32>, socket: Option<u32>) -> Locality {
        Locality { l2, l3, numa, socket }
    }

    #[test]
    fn reads_strings_of_real_jobs() {
        let of = Locality::parse;
        assert_eq!(of("SK0:L30:L20:L10:CR0:HT0:NM0"), known(Some(0), Some(0), Some(0), Some(0)));
        assert_eq!(of("SK1:L31:L218:L118:CR18:NM1"), known(Some(18), Some(1), Some(1), Some(1)));
        assert_eq!(of("SK0:L30:L20-1:L10-1:CR0-1:HT0-1:NM0"), known(None, Some(0), Some(0), Some(0)));
        assert_eq!(of("SK0:L212"), known(Some(12), None, None, Some(0)), "no L3 cache, no NUMA node");
    }

    #[test]
    fn cores_are_read() {
        let texts = ["SK0:L30:L20:L10:CR7:HT0:NM0", "CR3", "CR0-1", "CR1,1", "SK0", "", "CR1:CR1", "CRx"];
        assert_eq!(texts.map(Locality::core), [Some(7), Some(3), None, Some(1), None, None, None, None]);
    }

    #[test]
    fn several_modules_hide_the_levels_below() {
        let of = Locality::parse;
        assert_eq!(of("SK0:L30:L20:NM0-1"), known(None, None, None, Some(0)), "one L3 that spans two NUMA nodes");
        assert_eq!(of("SK0-1:L30:L20:NM0"), known(None, None, None, None));
        assert_eq!(of("SK0:L30,2:L20:NM0"), known(None, None, Some(0), Some(0)));
        assert_eq!(of("SK0:L30,0:L20-0:NM0"), known(Some(0), Some(0), Some(0), Some(0)), "one, said twice");
        assert_eq!(of("SK0:NM2-"), known(None, None, None, Some(0)), "open range");
    }

    #[test]
    fn garbage_is_not_known() {
        for text in
            ["", ":", ":::", "SK", "SK:", "SKx", "SK+1", "SK-1", "SK99999999999", "é:€", "Sé0", "sk0", "SK0:SK1"]
        {
            assert_eq!(Locality::parse(text), Locality::default(), "{text}");
        }
        assert_eq!(Locality::parse("junk:SK3:XX7").socket, Some(3));
    }

    proptest! {
        #[test]
        fn never_panics(text in any::<String>()) {
            let _ = Locality::parse(&text);
        }

        #[test]
        fn a_level_is_known_only_below_single_modules(text in "((SK|NM|L3|L2|CR)[0-9,-]{0,4}:?){0,6}") {
            let loc = Locality::parse(&text);
            for part in text.split(':').filter(|part| part.len() > 2) {
                if part.starts_with("SK") && list(&part[2..]) == Said::Several {
                    prop_assert_eq!(loc, Locality::default());
                }
            }
        }

        #[test]
        fn round_trip(socket in 0u32..9, numa in 0u32..99, l3 in 0u32..999, l2 in any::<u32>()) {
            let text = format!("SK{socket}:L3{l3}:L2{l2}:L1{l2}:CR{l2}:HT0-1:NM{numa}");
            prop_assert_eq!(Locality::parse(&text), known(Some(l2), Some(l3), Some(numa), Some(socket)));
        }
    }
}
